"""Drop-in for the evaluation of pycocotools: the same names, prints and numbers, faster."""

from jaccard_eval.compat.pycocotools.coco import COCO
from jaccard_eval.compat.pycocotools.cocoeval import COCOeval
from jaccard_eval.compat.pycocotools.install import init_as_pycocotools
from jaccard_eval.compat.pycocotools.params import Params

__all__ = ["COCO", "COCOeval", "Params", "init_as_pycocotools"]
