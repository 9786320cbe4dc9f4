"""Drop-in for the evaluation of pycocotools: the same names, prints and numbers, faster.

Its modules are here by their names, too: ``from jaccard_eval.pycocotools.coco import COCO``.
"""

import sys

from jaccard_eval.compat.faster_coco_eval import init_as_faster_coco_eval
from jaccard_eval.compat.lvis import init_as_lvis
from jaccard_eval.compat.pycocotools import coco, cocoeval, mask
from jaccard_eval.compat.pycocotools.coco import COCO
from jaccard_eval.compat.pycocotools.cocoeval import COCOeval
from jaccard_eval.compat.pycocotools.install import init_as_pycocotools
from jaccard_eval.compat.pycocotools.params import Params

__all__ = [
    "COCO",
    "COCOeval",
    "Params",
    "coco",
    "cocoeval",
    "init_as_faster_coco_eval",
    "init_as_lvis",
    "init_as_pycocotools",
    "mask",
]

# One module each, whichever name it is imported by: two would have classes that are not the same.
sys.modules |= {f"{__name__}.{module.__name__.rpartition('.')[2]}": module for module in (coco, cocoeval, mask)}
