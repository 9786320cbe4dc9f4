"""Programs written for pycocotools, run with the drop-in in its place."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import json
import subprocess
import sys
import tempfile
import textwrap
import types
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cocoscenes
import numpy as np
import pycocotools.coco
import pycocotools.cocoeval
import pytest
from exact import same_bits

import jaccard_eval.pycocotools as drop_in
from jaccard_eval.compat.pycocotools import coco as our_coco
from jaccard_eval.compat.pycocotools import cocoeval as our_cocoeval

Record = dict[str, Any]
BY_IMAGE = [kind for kind in cocoscenes.KINDS if kind.name in ("plain", "crowds and ties", "mostly empty")]


def indexed(coco: Any, document: Record) -> Any:
    gt = coco()
    gt.dataset = copy.deepcopy(document)
    gt.createIndex()
    return gt


def common_class(document: Record) -> Any:
    return Counter(ann["category_id"] for ann in document["annotations"] if not ann["iscrowd"]).most_common(1)[0][0]


# How projects call pycocotools, in a few lines each, from reading what they do. Each takes its classes, objects and
# detections of a scene, and returns evaluations, lines or masks, which must be equal.
Caller = Callable[[Any, Any, Record, list[Record]], list[Any]]


def by_parts(evaluation: Any) -> Any:
    """DETR, and torchvision before 0.10: the steps of `evaluate` one by one, without what it prints."""
    params = evaluation.params
    assert params.useSegm is None
    params.imgIds, params.catIds = list(np.unique(params.imgIds)), list(np.unique(params.catIds))
    params.maxDets = sorted(params.maxDets)
    evaluation.params = params
    evaluation._prepare()
    keys = [(image, category) for image in params.imgIds for category in params.catIds]
    evaluation.ious = {key: evaluation.computeIoU(*key) for key in keys}
    found = [
        evaluation.evaluateImg(image, category, area, params.maxDets[-1])
        for category in params.catIds
        for area in params.areaRng
        for image in params.imgIds
    ]
    evaluation._paramsEval = copy.deepcopy(params)
    return found


def at_once(evaluation: Any) -> Any:
    """torchvision's references of today."""
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.evaluate()
    return evaluation.evalImgs


def batches(step: Callable[[Any], Any], n_ranks: int) -> Caller:
    """Evaluate batches of an image or two on every rank, the first image on each; then merge what all have."""

    def run(coco: Any, cocoeval: Any, document: Record, detections: list[Record]) -> list[Any]:
        gt = indexed(coco, document)
        ids = [image["id"] for image in document["images"]]
        images, parts = [], []
        for rank in range(n_ranks):
            evaluation = cocoeval(gt, iouType="bbox")
            own = [ids[0], *ids[rank::n_ranks]]
            for batch in (own[start : start + 2] for start in range(0, len(own), 2)):
                rows = [copy.deepcopy(row) for row in detections if row["image_id"] in batch]
                with contextlib.redirect_stdout(io.StringIO()):
                    evaluation.cocoDt = coco.loadRes(gt, rows) if rows else coco()
                evaluation.params.imgIds = list(np.unique(batch))
                found = np.asarray(step(evaluation), dtype=object)
                images += evaluation.params.imgIds
                parts.append(found.reshape(-1, len(evaluation.params.areaRng), len(evaluation.params.imgIds)))
        merged, first = np.unique(images, return_index=True)
        evaluation.evalImgs = list(np.concatenate(parts, 2)[..., first].flatten())
        evaluation.params.imgIds = list(merged)
        evaluation._paramsEval = copy.deepcopy(evaluation.params)
        evaluation.accumulate()
        evaluation.summarize()
        return [evaluation]

    return run


def polygons_to_masks(coco: Any, cocoeval: Any, document: Record, detections: list[Record]) -> list[Any]:
    """Data sets of DETR and torchvision: an object is where any of its polygons is."""
    del cocoeval, detections
    mask = sys.modules[coco.__module__].maskUtils
    shapes = [np.array([4.0, 3, 17, 5, 9, 19]).tolist(), [1, 1, 6, 1, 6, 5, 1, 5]]
    height, width = 24, 20
    decoded = mask.decode(mask.frPyObjects(shapes, height, width))
    return [decoded.any(axis=2), mask.merge(mask.frPyObjects(shapes, height, width)), len(document)]


def own_index(coco: Any, cocoeval: Any, document: Record, detections: list[Record]) -> list[Any]:
    """MMDetection: a subclass with other arguments and names, chosen classes, images and caps, AP by class."""

    class Api(coco):  # type: ignore[misc]
        def __init__(self, annotation_file: str | None = None) -> None:
            super().__init__(annotation_file=annotation_file)
            self.img_ann_map, self.cat_img_map = self.imgToAnns, self.catToImgs

        def get_cat_ids(self, cat_names: Any = (), sup_names: Any = (), cat_ids: Any = ()) -> Any:
            return self.getCatIds(cat_names, sup_names, cat_ids)

    gt = indexed(Api, document)
    evaluation = cocoeval(gt, gt.loadRes(copy.deepcopy(detections)), "bbox")
    evaluation.params.catIds = gt.get_cat_ids(cat_names=[gt.cats[common_class(document)]["name"]])
    evaluation.params.imgIds = gt.getImgIds()[::-1]
    evaluation.params.maxDets = [100, 300, 1000]
    evaluation.params.iouThrs = np.array([0.5, 0.75])
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    again = cocoeval(gt, gt.loadRes(copy.deepcopy(detections)), "bbox")  # proposals
    again.params.useCats = 0
    again.evaluate()
    again.accumulate()
    again.summarize()
    return [evaluation, again]


def copied_and_written(coco: Any, cocoeval: Any, document: Record, detections: list[Record]) -> list[Any]:
    """detectron2: results of a list that is copied, a box less for masks, other caps, precision by class."""
    gt = indexed(coco, document)
    found = gt.loadRes(copy.deepcopy(detections))
    evaluation = cocoeval(gt, found, "bbox")
    evaluation.params.maxDets = [1, 10, 100]
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    precision = evaluation.eval["precision"][:, :, :, 0, -1]
    return [evaluation, [precision[:, :, k][precision[:, :, k] > -1] for k in range(precision.shape[2])]]


def of_a_file(coco: Any, cocoeval: Any, document: Record, detections: list[Record]) -> list[Any]:
    """YOLOX and EfficientDet: sections removed, results through a file, with an empty list for a mask."""
    gt = indexed(coco, {**document, "info": {}, "licenses": []})
    for name in ("info", "licenses"):
        gt.dataset.pop(name, None)
    for image in gt.dataset["images"]:
        image.pop("file_name", None)
    rows = [row | {"segmentation": []} for row in detections]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "found.json").write_text(json.dumps(rows))
        found = gt.loadRes(f"{folder}/found.json")
    evaluation = cocoeval(gt, found, "bbox")
    evaluation.params.imgIds = [image["id"] for image in document["images"]][::2]
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return [evaluation, [gt.cats[key]["name"] for key in sorted(gt.cats)]]


def of_thresholds(coco: Any, cocoeval: Any, document: Record, detections: list[Record]) -> list[Any]:
    """SAHI: other thresholds and areas; and, for errors, categories mixed with a supercategory and ignored objects."""
    gt = indexed(coco, document)
    found = gt.loadRes(copy.deepcopy(detections))
    evaluation = cocoeval(copy.deepcopy(gt), copy.deepcopy(found), "bbox")
    evaluation.params.iouThrs = [0.75, 0.5, 0.1]
    evaluation.params.maxDets = [100]
    evaluation.params.areaRng = [[0, 1e10], [0, 400]]
    evaluation.params.areaRngLbl = ["all", "small"]
    evaluation.evaluate()
    evaluation.accumulate()
    one, others, kept = copy.deepcopy(gt), copy.deepcopy(found), common_class(document)
    for ann in one.dataset["annotations"]:
        ann["ignore"] = ann["iscrowd"] = int(ann["category_id"] != kept)
        ann["category_id"] = kept
    others.dataset["annotations"] = [ann for ann in others.dataset["annotations"] if ann["category_id"] == kept]
    for side in (one, others):
        side.createIndex()
    mixed = cocoeval(one, others, "bbox")
    mixed.params.iouThrs, mixed.params.maxDets, mixed.params.useCats = [0.1], [100], 0
    mixed.evaluate()
    mixed.accumulate()
    return [evaluation, mixed]


CALLERS: dict[str, Caller] = {
    "DETR": batches(by_parts, 1),
    "DETR on three ranks": batches(by_parts, 3),
    "torchvision": batches(at_once, 1),
    "torchvision on three ranks": batches(at_once, 3),
    "masks of data sets": polygons_to_masks,
    "MMDetection": own_index,
    "detectron2": copied_and_written,
    "YOLOX and EfficientDet": of_a_file,
    "SAHI": of_thresholds,
}


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools under NumPy 2
@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("kind", BY_IMAGE, ids=lambda kind: kind.name)
def test_callers_get_what_pycocotools_gives(kind: cocoscenes.Kind, caller: str) -> None:
    document, detections = cocoscenes.draw(kind, seed=1)
    got, printed = [], []
    peers = (pycocotools.coco.COCO, pycocotools.cocoeval.COCOeval), (drop_in.COCO, drop_in.COCOeval)
    for coco, cocoeval in peers:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            got.append(CALLERS[caller](coco, cocoeval, copy.deepcopy(document), copy.deepcopy(detections)))
        printed.append([line for line in output.getvalue().splitlines() if "t=" not in line])
    assert printed[0] == printed[1]
    for theirs, ours in zip(*got, strict=True):
        if not isinstance(theirs, pycocotools.cocoeval.COCOeval):
            np.testing.assert_equal(ours, theirs)
            continue
        assert isinstance(ours, drop_in.COCOeval)
        assert ours.eval["precision"].max() > 0
        assert same_bits(ours.stats, theirs.stats)
        for name in ("precision", "recall", "scores"):
            assert same_bits(ours.eval[name], theirs.eval[name])


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_without_objects_the_shapes_of_detections_need_not_be_there(kind: str) -> None:
    document = {"images": [{"id": 1, "height": 9, "width": 9}], "categories": [{"id": 1}], "annotations": []}
    found = [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5}]
    precision = []
    for coco, cocoeval in ((pycocotools.coco, pycocotools.cocoeval), (our_coco, our_cocoeval)):
        with contextlib.redirect_stdout(io.StringIO()):
            gt = indexed(coco.COCO, document)
            evaluation = cocoeval.COCOeval(
                gt, gt.loadRes([found[0] | {"segmentation": {"size": [9, 9], "counts": "Q2"}}]), kind
            )
            evaluation.evaluate()
            evaluation.accumulate()
        precision.append(evaluation.eval["precision"])
        evaluation.params.maxDets = []
        with contextlib.redirect_stdout(io.StringIO()), pytest.raises(IndexError):
            evaluation.evaluate()
    assert same_bits(*precision)


# pycocoEvalDemo of the COCO API, for boxes, with paths in place of its own.
DEMO = """
import sys
import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

annType = ['segm','bbox','keypoints']
annType = annType[1]
cocoGt=COCO(sys.argv[1])
cocoDt=cocoGt.loadRes(sys.argv[2])
imgIds=sorted(cocoGt.getImgIds())
imgIds=imgIds[0:100]
imgId = imgIds[np.random.randint(100)]
cocoEval = COCOeval(cocoGt,cocoDt,annType)
cocoEval.params.imgIds  = imgIds
cocoEval.evaluate()
cocoEval.accumulate()
cocoEval.summarize()
print(repr(cocoEval.stats.tolist()))
"""
INSTALLED = "import jaccard_eval.pycocotools\njaccard_eval.pycocotools.init_as_pycocotools()\n"


def run(script: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, in which nothing was imported."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_demo_of_pycocotools_prints_the_same(shared_data: Path) -> None:
    files = (
        shared_data / "faster-coco-eval/tests/dataset/cocoapi/instances_val2014_100.json",
        shared_data / "cocoapi/results/instances_val2014_fakebbox100_results.json",
    )
    if not all(path.is_file() for path in files):
        pytest.skip("needs the COCO API's example beside the checkout")
    ours, theirs = run(INSTALLED + DEMO, *files), run(DEMO, *files)
    assert theirs.returncode == 0
    assert ours.stderr == ""
    lines = [[line for line in done.stdout.splitlines() if "t=" not in line] for done in (ours, theirs)]
    assert lines[0] == lines[1]
    assert "= 0.505" in ours.stdout
    assert len(ours.stdout.splitlines()) == len(theirs.stdout.splitlines())


def test_installing_replaces_the_modules_that_programs_import() -> None:
    done = run(
        INSTALLED
        + """
        import sys
        import pycocotools
        import pycocotools.mask
        from pycocotools import coco, mask
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval, Params
        jaccard_eval.pycocotools.init_as_pycocotools()
        print(COCO is jaccard_eval.pycocotools.COCO, COCOeval is jaccard_eval.pycocotools.COCOeval, coco.COCO is COCO)
        print(mask.__name__, mask.area(mask.encode(__import__('numpy').ones((2, 3), dtype='uint8', order='F'))))
        print(mask is pycocotools.mask, 'pycocotools._mask' in sys.modules, bool(pycocotools.__file__))
        print(coco.maskUtils is mask, coco._isArrayLike([1]), coco._isArrayLike(1))
        """.replace("\n        ", "\n")
    )
    assert done.stdout.splitlines() == [
        "True True True",
        "jaccard_eval.compat.pycocotools.mask 6",
        "True False True",
        "True True False",
    ], done.stderr


def test_masks_that_were_imported_before_are_no_obstacle() -> None:
    done = run("import pycocotools.mask\n" + INSTALLED + "import pycocotools.coco as c\nprint(c.__name__)")
    assert done.stdout == "jaccard_eval.compat.pycocotools.coco\n", done.stderr


def test_installing_too_late_names_the_importer(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text("from pycocotools.coco import COCO as Api\n")
    done = run(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport trainer\n" + INSTALLED)
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    assert message == (
        "jaccard_eval.errors.UsageError: pycocotools.coco was already imported by trainer, which would keep using it. "
        "Call init_as_pycocotools() before that import."
    )


def test_importing_the_drop_in_imports_no_pycocotools() -> None:
    done = run(INSTALLED + "import sys\nprint(*[name for name in sys.modules if name.startswith('pycocotools')])")
    assert done.stdout.split() == [
        "pycocotools",
        "pycocotools.coco",
        "pycocotools.cocoeval",
        "pycocotools.mask",
    ], done.stderr


@pytest.fixture
def both() -> Iterator[tuple[Any, Any]]:
    """Both index objects of one scene, with copies of its detections loaded."""
    document, detections = cocoscenes.draw(BY_IMAGE[1], seed=3)
    document["categories"][0]["supercategory"] = document["categories"][1]["supercategory"] = "thing"
    sides = []
    with contextlib.redirect_stdout(io.StringIO()):
        for coco in (drop_in.COCO, pycocotools.coco.COCO):
            gt = coco()
            gt.dataset = copy.deepcopy(document)
            gt.createIndex()
            sides.append((gt, gt.loadRes(copy.deepcopy(detections))))
        yield sides[0], sides[1]


def test_the_index_is_that_of_pycocotools(both: tuple[Any, Any]) -> None:
    for ours, theirs in zip(*both, strict=True):
        for name in ("dataset", "anns", "cats", "imgs", "imgToAnns", "catToImgs"):
            assert getattr(ours, name) == getattr(theirs, name), name


QUERIES: dict[str, list[Record]] = {
    "getAnnIds": [
        {}, {"imgIds": 1}, {"imgIds": [3, 1, 99]}, {"catIds": 2}, {"imgIds": [1, 2], "catIds": [1]},
        {"areaRng": [0, 130]}, {"iscrowd": 1}, {"imgIds": [2], "iscrowd": False},
        {"imgIds": [1], "areaRng": [100, 256]},
    ],
    "getCatIds": [{}, {"catNms": ["class 2"]}, {"catNms": "class 1 or 2"}, {"supNms": ["thing"]}, {"catIds": 2}],
    "getImgIds": [{}, {"imgIds": [2, 3]}, {"catIds": [1, 2]}, {"imgIds": [1], "catIds": 2}],
    "loadAnns": [{"ids": [2, 1]}, {"ids": 3}],
    "loadCats": [{"ids": [2]}, {"ids": 1}],
    "loadImgs": [{"ids": [3, 1]}, {"ids": 2}],
}  # fmt: skip


@pytest.mark.parametrize("method", QUERIES)
def test_queries_answer_as_those_of_pycocotools(method: str, both: tuple[Any, Any]) -> None:
    for arguments in QUERIES[method]:
        for ours, theirs in zip(*both, strict=True):
            assert getattr(ours, method)(**arguments) == getattr(theirs, method)(**arguments), arguments


@pytest.mark.parametrize("name", ["COCO", "COCOeval", "Params"])
def test_public_methods_and_their_arguments_are_those_of_pycocotools(name: str) -> None:
    home = pycocotools.coco if name == "COCO" else pycocotools.cocoeval
    ours, theirs = getattr(drop_in, name), getattr(home, name)
    methods = {method for method in dir(theirs) if not method.startswith("_")}
    made = {attribute for attribute, value in vars(ours).items() if isinstance(value, property)}  # when they are read
    assert methods == {method for method in dir(ours) if not method.startswith("_")} - made
    for method in methods:
        arguments, expected = (list(inspect.signature(getattr(side, method)).parameters) for side in (ours, theirs))
        assert arguments == expected, method


def test_public_attributes_are_those_of_pycocotools(both: tuple[Any, Any]) -> None:
    (gt, found), (their_gt, their_found) = both
    ours, theirs = drop_in.COCOeval(gt, found, "bbox"), pycocotools.cocoeval.COCOeval(their_gt, their_found, "bbox")
    for mine, expected in ((gt, their_gt), (ours, theirs), (ours.params, theirs.params)):
        # These four are made when they are read. Ours know besides whether to print, and to repeat what ids do there.
        assert vars(expected).keys() - vars(mine).keys() <= {"_gts", "_dts", "evalImgs", "ious"}
        assert {name for name in vars(mine) if name[0] != "_"} - vars(expected).keys() <= {"verbose", "strict"}


def test_downloading_is_refused_with_what_to_do_instead(both: tuple[Any, Any], tmp_path: Path) -> None:
    (gt, _), _ = both
    with pytest.raises(NotImplementedError, match="Fetch the 'coco_url' of each image"):
        gt.download(str(tmp_path), [1])


def test_results_are_read_from_an_array(both: tuple[Any, Any]) -> None:
    rows = np.array([[1, 10.5, 20, 30, 40, 0.75, 2], [3, 0, 0, 5, 5, 0.5, 1]])
    (ours, _), (theirs, _) = both
    assert ours.loadRes(rows.copy()).dataset == theirs.loadRes(rows.copy()).dataset
    assert ours.loadRes(rows).anns[1]["area"] == 1200


def test_results_of_other_images_are_refused(both: tuple[Any, Any]) -> None:
    for gt, _ in both:
        with pytest.raises(AssertionError, match="Results do not correspond to current coco set"):
            gt.loadRes([{"image_id": 99, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}])


def test_captions_are_refused_as_results(both: tuple[Any, Any]) -> None:
    (gt, _), _ = both
    with pytest.raises(NotImplementedError, match="reads results with 'bbox'"):
        gt.loadRes([{"image_id": 1, "caption": "a dog"}])


@pytest.mark.needs("matplotlib")
def test_annotations_are_drawn_as_polygons_and_boxes(both: tuple[Any, Any]) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    (_, found), _ = both
    figure = pyplot.figure()
    found.showAnns(found.loadAnns([1, 2]), draw_bbox=True)
    shapes = [collection.get_paths() for collection in figure.gca().collections]
    # Filled and outlined: a polygon and a box of each annotation, which are one and the same in results.
    assert [len(paths) for paths in shapes] == [4, 4]
    left, top, width, height = found.anns[1]["bbox"]
    for path in shapes[0][:2]:
        assert path.get_extents().bounds == pytest.approx((left, top, width, height))
    pyplot.close(figure)


@pytest.mark.needs("matplotlib")
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools under NumPy 2
def test_masks_and_keypoints_are_drawn_as_by_pycocotools() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    person = {"id": 1, "name": "person", "skeleton": [[1, 2], [2, 3]]}
    runs = {"size": [6, 8], "counts": [7, 4, 2, 4, 31]}
    pose = [1, 1, 2, 4, 2, 1, 0, 0, 0]
    ann = {"id": 1, "image_id": 1, "category_id": 1, "iscrowd": 0, "segmentation": runs, "keypoints": pose}
    drawn = []
    for coco in (drop_in.COCO, pycocotools.coco.COCO):
        with contextlib.redirect_stdout(io.StringIO()):
            gt = coco()
            gt.dataset = {"images": [{"id": 1, "height": 6, "width": 8}], "categories": [person], "annotations": [ann]}
            gt.createIndex()
        np.random.seed(0)  # noqa: NPY002 - which both draw their colours from
        axes = pyplot.figure().gca()
        gt.showAnns([copy.deepcopy(ann)])
        lines = [(line.get_xydata().tolist(), line.get_color(), line.get_markeredgecolor()) for line in axes.lines]
        drawn.append(([image.get_array().tolist() for image in axes.images], [str(line[0]) for line in lines]))
        pyplot.close("all")
    assert drawn[0] == drawn[1]


def evaluated(peer: int, patch: Any = None) -> Any:
    """Evaluate one scene with a class of our own or of the peer, changed by `patch` before."""
    document, detections = cocoscenes.draw(BY_IMAGE[1], seed=5)
    coco, cocoeval = ((drop_in.COCO, drop_in.COCOeval), (pycocotools.coco.COCO, pycocotools.cocoeval.COCOeval))[peer]
    with contextlib.redirect_stdout(io.StringIO()):
        gt = coco()
        gt.dataset = copy.deepcopy(document)
        gt.createIndex()
        evaluation = cocoeval(gt, gt.loadRes(copy.deepcopy(detections)), "bbox")
        if patch is not None:
            evaluation = patch(evaluation) or evaluation
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation


def of_instance(name: str, replacement: Any) -> Any:
    return lambda evaluation: setattr(evaluation, name, types.MethodType(replacement, evaluation))


def of_subclass(name: str, replacement: Any) -> Any:
    def change(evaluation: Any) -> None:
        evaluation.__class__ = type("Changed", (type(evaluation),), {name: replacement})

    return change


def no_overlap(evaluation: Any, image: Any, category: Any) -> Any:
    overlaps = type(evaluation).__mro__[-2].computeIoU(evaluation, image, category)
    return np.zeros_like(overlaps) if len(overlaps) else []


def only_small(evaluation: Any, image: Any, category: Any, area: Any, cap: int) -> Any:
    result = type(evaluation).__mro__[-2].evaluateImg(evaluation, image, category, area, cap)
    if result is not None:
        result["gtIgnore"] = np.ones_like(result["gtIgnore"])
        result["gtIgnore"][:1] = 0
    return result


def nothing_prepared(evaluation: Any) -> None:
    type(evaluation).__mro__[-2]._prepare(evaluation)
    evaluation._dts.clear()


REPLACED = {"computeIoU": no_overlap, "evaluateImg": only_small, "_prepare": nothing_prepared}


@pytest.mark.parametrize("way", [of_instance, of_subclass])
@pytest.mark.parametrize("name", REPLACED)
def test_a_method_that_was_replaced_is_called_as_by_pycocotools(name: str, way: Any) -> None:
    ours, theirs = (evaluated(peer, way(name, REPLACED[name])) for peer in range(2))
    assert same_bits(ours.stats, theirs.stats)
    assert not same_bits(ours.stats, evaluated(0).stats)


def test_a_patch_of_the_class_is_honoured_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(drop_in.COCOeval, "computeIoU", lambda *_: [])
        assert evaluated(0).stats[0] == 0.0
    assert same_bits(evaluated(0).stats, evaluated(1).stats)


def test_results_are_a_list_and_what_is_changed_in_them_is_accumulated() -> None:
    sides = [evaluated(peer) for peer in range(2)]
    for evaluation in sides:
        assert isinstance(evaluation.evalImgs, list)
        assert isinstance(evaluation.ious, dict)
        for result in filter(None, evaluation.evalImgs[::2]):
            result["dtScores"] = [0.5] * len(result["dtScores"])
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation.accumulate()
    for name in ("precision", "recall", "scores"):
        assert same_bits(sides[0].eval[name], sides[1].eval[name])
    assert not same_bits(sides[0].eval["scores"], evaluated(0).eval["scores"])
