"""What evaluate and its relatives are asked for, as frozen values. Nothing is read, and nothing is computed.

The document of a result names what differs from the defaults (`to_document`); what reads it takes the fields' types
from here, so that an option is declared once between a verb's signature and what it does.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, fields
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaccard_eval.codes import CODES, STOPS
from jaccard_eval.errors import UsageError
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
from jaccard_eval.text import did_you_mean, is_numeral, quoted_value

if TYPE_CHECKING:
    PathText = str | os.PathLike[str]
else:
    PathText = str  # as a document has it: msgspec, which reads it, takes the annotations at their word

BY_FOLDER = "folder"  # what images may be grouped by, if not by a file
# What masks of a file have exchanged: x and y of polygons, or of pixels their axes, the order of runs, or the size.
COLOR_TABLES = ("cityscapes", "voc")  # colours of classes that have a name
AS_WRITTEN = "xy"
MASK_AXES = {
    AS_WRITTEN: "as written",
    "yx": "with x and y exchanged",
    "transposed": "with rows and columns exchanged",
    "row-major": "with runs along the rows",
    "wh": "with size as [width, height]",
}
ANGLES = ("deg-cw", "deg-ccw", "rad-cw", "rad-ccw")  # of oriented boxes: unit and direction, as one sees the image
_SPELLED = {"deg": "degrees", "rad": "radians", "cw": "clockwise", "ccw": "counter-clockwise"}
# The score of an operating point that is found rather than given: "best-f1", or what it is to reach, "precision=0.9".
BEST_F1 = "best-f1"
AIMS = ("precision", "recall", "fppi")
ENCODINGS = ("xywh", "xyxy", "cxcywh", "xxyy", "yxyx")  # what the four numbers of a box are
# How images are paired, in the order of trial; asked for, "id" treats 7 and "7" as the same.
IMAGE_WAYS = ("id", "name", "path", "basename", "stem", "case", "decorated", "number", "affix", "id+1", "id-1")


def score_of(text: str) -> float | str | None:
    """Return the score of an operating point: a number, "best-f1", or an aim such as "precision=0.9"; None for neither.

    Examples
    --------
    >>> score_of("0.50"), score_of("best-f1"), score_of("recall=.80"), score_of("recall=80"), score_of("high")
    (0.5, 'best-f1', 'recall=0.8', None, None)
    """
    kind, aimed, number = text.rpartition("=")
    if text == BEST_F1 or not is_numeral(number.strip()):
        return text if text == BEST_F1 else None
    value = float(number)
    if not aimed:
        return value
    most = math.inf if kind.strip() == "fppi" else 1.0
    text = repr(value).removesuffix(".0")
    return f"{kind.strip()}={text}" if kind.strip() in AIMS and 0 <= value <= most else None


def spelled_angle(name: str) -> str:
    """Return one of `ANGLES` in words."""
    return ", ".join(_SPELLED[part] for part in name.split("-"))


# A field with a help is an option of the command line, by its name and its type; a group of them is shown together.
def _option(help: str, *, default: Any = None, group: str = "rules", **more: Any) -> Any:  # noqa: A002 - the word of click
    return field(default=default, metadata={"help": {group: help}, **more})


def _side(help: str, *, default: Any = None, **more: Any) -> Any:  # noqa: A002
    """Declare an option of each side, such as --gt-box and --pred-box."""
    return _option(help, default=default, group="side", **more)


def _both(help: str, *, default: Any = None, side: str | None = None, **more: Any) -> Any:  # noqa: A002
    """Declare an option that is given once for both sides; with a help for it, for one side too."""
    return field(default=default, metadata={"help": {"both": help} | ({"side": side} if side else {}), **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """How images are resampled.

    Parameters
    ----------
    n_resamples : int
        How many resamples are drawn.
    confidence_level : float
        Of the intervals, between 0 and 1.
    rng : int
        Seed; each resample is drawn from the seed and its own number, whoever computes it.
    group_by : str, optional
        "folder", or the path of a CSV file with the rows ``image,group``: groups of images are drawn as a whole, as the
        frames of a video have to be.

    Examples
    --------
    >>> from jaccard_eval import Bootstrap, BoxTable, evaluate
    >>> gt = BoxTable.from_arrays(range(40), [0] * 40, [[0, 0, 10, 10]] * 40)
    >>> boxes = [[0, 0, 10, 9.5] if i % 2 else [30, 0, 40, 10] for i in range(40)]  # every second one is found
    >>> pred = BoxTable.from_arrays(range(40), [0] * 40, boxes, score=[1 - i / 100 for i in range(40)])
    >>> metric = evaluate(gt, pred, bootstrap=Bootstrap(n_resamples=200)).metrics["AP50"]
    >>> metric.interval[0] < metric.value < metric.interval[1]
    True
    """

    n_resamples: int = 1000
    confidence_level: float = 0.95
    rng: int = 0
    group_by: str | None = None

    def __post_init__(self) -> None:
        for name, least in (("n_resamples", 2), ("rng", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise UsageError(f"{name} must be a whole number >= {least}, got {value}")
        if not 0 < self.confidence_level < 1:
            raise UsageError(f"confidence_level must be above 0 and below 1, got {self.confidence_level}")
        if self.group_by is not None:
            object.__setattr__(self, "group_by", os.fspath(self.group_by))  # documents keep it


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Some of the images.

    Parameters
    ----------
    name : str
    patterns : tuple of str
        Names of images, or globs of names, in which ``*`` also matches slashes.
    exact : bool
        Whether the patterns are names and nothing else, as those of a file are.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, Slice, evaluate
    >>> gt = BoxTable.from_arrays(["night/a.jpg", "day/b.jpg"], [0, 0], [[0, 0, 10, 10], [0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays(["day/b.jpg"], [0], [[0, 0, 10, 10]], score=[0.9])
    >>> [part] = evaluate(gt, pred, slices=[Slice(name="night", patterns=("night/*",))]).slices
    >>> part.images, part.values["AP"].value
    (1, 0.0)
    """

    name: str
    patterns: tuple[str, ...]
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read one side; None means: find out by looking.

    Parameters
    ----------
    role : {"gt", "pred"}
    box : {"xywh", "xyxy", "cxcywh", "xxyy", "yxyx"}, optional
        What the four numbers of a box are.
    units : {"px", "norm"}, optional
    names : tuple of str, optional
        Class names by index.
    images : path, optional
        The folder of images, for their list and sizes; a folder that was listed already works too.
    columns : str, optional
        Column layout of text files, such as "box-conf"; of tables which column is what, "class=palm_class,score=p", by
        the usual name of each (image, class, score, bbox, xmin, ...). Quote a part with a comma, as in CSV.
    split : str
        Which split is read of a data set that has splits: by its description, or by the names of its folders or files.
    assume_score : float, optional
        Score of predictions that carry none.
    origin : {0, 1}
        What the file calls the first pixel: 0, or 1 as in PASCAL VOC and MATLAB. It is subtracted from x and y of boxes
        in pixels.
    resized : str, optional
        What was done to the images that boxes are of; they are mapped back when both sides meet. "stretch:640x512"
        (width, height; "stretch:100" is per cent), "letterbox:640", "pad:640" (added behind), "short:800,1333",
        "scale:0.5", "offset:-20,0" (a crop), "rect:640", "letterbox-px:640"; turns: "mirror", "flip", "swap", "rot90"
        (counter-clockwise), "rot180", "rot270", "anti"; joined with "+", as in "mirror+pad:640".
    drop_inverted : bool
        Drop boxes of negative width or height, such as corners in the wrong order.
    skip_invalid : bool
        Skip records and lines that cannot be used, such as a box without numbers or a polygon of two points; they
        are counted in a warning and in the signature.
    angle : {"deg-cw", "deg-ccw", "rad-cw", "rad-ccw"}, optional
        Unit and direction of the angles of oriented boxes, clockwise or not as one sees the image.
    keypoint_order : tuple of int, optional
        Which point of the file each keypoint is, counted from 0: (0, 2, 1) exchanges the last two of three.
    mask_axes : {"xy", "yx", "transposed", "row-major", "wh"}, optional
        What the file exchanges in masks: "yx" writes y before x in polygons. Of pixels (RLE, arrays, images),
        "transposed" exchanges rows and columns, "row-major" runs along the rows, and "wh" has the width before the
        height in the size of RLE.
    hierarchy, image_labels, class_descriptions : path, optional
        Of Open Images: the hierarchy of classes (JSON), the verified image-level labels (CSV) and the names of classes
        (CSV), where they do not lie next to the table.
    iou_type : {"bbox", "segm", "boundary", "keypoints", "obb", "probiou"}
        What is compared: masks, keypoints and oriented boxes are read only for that.

    Examples
    --------
    >>> from jaccard_eval import ReadOptions, load
    >>> table = {"image": ["a.jpg"], "class": [1], "x": [5.0], "y": [5.0], "width": [10.0], "height": [10.0]}
    >>> import pandas as pd
    >>> load(pd.DataFrame(table), options=ReadOptions(box="cxcywh", names=("dog", "cat"))).boxes.xywh.tolist()
    [[0.0, 0.0, 10.0, 10.0]]
    """

    role: str = "gt"
    box: str | None = _side("Box encoding: " + ", ".join(ENCODINGS) + ".", choices=ENCODINGS, basic=True)
    units: str | None = _side("Pixels, or fractions of the image size.", choices=("px", "norm"))
    names: tuple[str, ...] | None = _both(
        "Class names by index.", side="Class names by index, of this side.", basic=True
    )
    images: PathText | None = _both(
        "Image folder, for the list, sizes, and to show them.",
        side="Image folder of this side.",
        basic=True,
    )
    columns: str | None = _side(
        "Columns: a layout of text files (box-conf), or names of a table's columns (class=a,score=b)."
    )
    split: str = _both("Split to read, if the data set has splits.", default="val")
    assume_score: float | None = _both("Score of predictions without one; for precision and recall.")
    origin: int = _side("Index of the first pixel: 0, or 1 as in VOC.", default=0, choices=("0", "1"))
    resized: str | None = _side(
        "Map boxes back from resized images: stretch:640x512 (width x height), letterbox:640, pad:640, short:800,1333,"
        " scale:0.5, offset:-20,0, rect:640, mirror, rot90; join with +."
    )
    drop_inverted: bool = _side("Ignore boxes with negative width or height.", default=False)
    skip_invalid: bool = _both("Skip records and lines that cannot be used, and count them.", default=False)
    angle: str | None = _side("Angles of oriented boxes: " + ", ".join(ANGLES) + ".", choices=ANGLES)
    keypoint_order: tuple[int, ...] | None = _side(
        "Which point of the file each keypoint is, from 0: 0,2,1 exchanges the last two of three."
    )
    mask_axes: str | None = _side(
        "What masks exchange: yx (polygons); of pixels transposed, row-major, or wh (size of RLE).",
        choices=tuple(MASK_AXES),
    )
    hierarchy: PathText | None = _both("Open Images: hierarchy of classes (JSON), if it is not next to GT.")
    image_labels: PathText | None = _both("Open Images: verified image-level labels (CSV), if not next to GT.")
    class_descriptions: PathText | None = _both("Open Images: names of classes (CSV), if not next to the tables.")
    iou_type: str = "bbox"
    regions: bool = False
    whole_bodies: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SideOptions:
    """How both sides are read, chosen from and brought together; `evaluate` explains each."""

    # All that are empty are found out.
    match_images: str | None = _option(
        f"How to pair images: by {', '.join(IMAGE_WAYS)} (the prediction's id plus or minus 1).",
        group="pairing",
        choices=IMAGE_WAYS,
    )
    extra_images: str = _option(
        "Images that only the predictions name: stop (error), ignore them, or count them as images without objects"
        " (empty). Default: error if the ground truth lists its images, else empty.",
        default="error",
        group="pairing",
        choices=("error", "ignore", "empty"),
    )
    images_in_common: bool = _option(
        "Evaluate only images that both sides list; a warning counts the others.", default=False, group="pairing"
    )
    # Prediction class to ground-truth class, or the name of a rule that `data.classmaps` knows.
    class_map: Mapping[str, str] | str | None = _option(
        "Map prediction classes: pred=gt,..., a .json or .yaml file, id+1, or auto (by overlap).",
        group="pairing",
        basic=True,
    )
    # Class of the ground truth to the class that it is evaluated as.
    gt_class_map: Mapping[str, str] | None = _option(
        "Merge or rename classes of the ground truth: car=vehicle,truck=vehicle, or a .json or .yaml file.",
        group="pairing",
    )
    classes: Sequence[str] = _option("Evaluate only these classes.", default=(), basic=True)
    exclude_classes: Sequence[str] = _option("Evaluate all classes but these.", default=())
    score_min: float | None = _option("Ignore predictions with a lower score.", basic=True)
    nms: float | None = _option("Apply per-class NMS by IoU of boxes first.")
    drop_duplicates: bool = _option("Ignore rows that repeat an earlier row of the same side.", default=False)
    gt_format: str | None = _option("Format of the ground truth ('jaccard-eval formats').", group="gt", basic=True)
    pred_format: str | None = _option("Format of the predictions ('jaccard-eval formats').", group="pred", basic=True)
    gt_options: ReadOptions | None = None
    pred_options: ReadOptions | None = None
    allow: Sequence[str] = ()

    def __post_init__(self) -> None:
        require_lists(classes=self.classes, exclude_classes=self.exclude_classes, allow=self.allow)
        for name in ("classes", "exclude_classes", "allow"):
            given = getattr(self, name)
            object.__setattr__(self, name, () if given is None else tuple(given))
        for code in self.allow:
            if code not in CODES:
                hint = did_you_mean(str(code), CODES) or " 'jaccard-eval help findings' lists all."
                raise UsageError(f"allow: {quoted_value(code)} is not a finding code.{hint}")
        require_numbers(score_min=self.score_min, nms=self.nms)
        if self.images_in_common and self.extra_images == "empty":
            raise UsageError(
                "images_in_common ignores extra images, extra_images='empty' counts them: pass one of them"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions(SideOptions):
    """All that `evaluate` takes besides the two sides and the protocol."""

    score: float | str | None = None
    errors: bool = False
    confusion: bool = False
    worst_images: int | None = None
    bootstrap: Bootstrap | None = None
    slices: Sequence[Slice] = ()

    def __post_init__(self) -> None:
        SideOptions.__post_init__(self)
        aimed = score_of(self.score) if isinstance(self.score, str) else None
        require_numbers(score=self.score if aimed is None else aimed if isinstance(aimed, float) else None)
        object.__setattr__(self, "score", self.score if aimed is None else aimed)
        listed = self.worst_images
        if listed is not None and (not isinstance(listed, int) or isinstance(listed, bool) or listed < 1):
            raise UsageError(f"worst_images must be a whole number of at least 1, got {quoted_value(listed)}")


def to_document(options: EvaluateOptions) -> dict[str, Any]:
    """Return the options that change the numbers, as JSON has them; without those at their defaults."""
    # Whether errors, confusions and worst images were asked for shows in their parts of the document.
    in_parts = ("errors", "confusion", "worst_images")
    recorded = {name: _plain(value) for name, value in changed(options).items() if name not in in_parts}
    # Codes that only --strict refuses do not belong to the result.
    recorded["allow"] = [code for code in options.allow if code in STOPS]
    return {name: value for name, value in recorded.items() if value not in ([], {})}


def changed(options: Any) -> dict[str, Any]:
    """Return the options that are not as they are by default, by name."""
    given = ((known.name, getattr(options, known.name), known.default) for known in fields(options))
    return {name: value for name, value, default in given if value != default}


def _plain(value: Any) -> Any:
    if isinstance(value, ReadOptions):  # the role follows from which side it is
        return {name: _plain(item) for name, item in changed(value).items() if name != "role"}
    if isinstance(value, Bootstrap | Slice):  # whole, so that a later default changes no result that was written
        given = ((known.name, getattr(value, known.name)) for known in fields(value))
        return {name: _plain(item) for name, item in given if item is not None}
    if isinstance(value, Mapping):
        return {str(key): str(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):  # a number of NumPy
        return value.item()
    return str(Path(value)) if isinstance(value, os.PathLike) else value


def require_numbers(**options: float | str | None) -> None:
    """Refuse anything but a finite number; None means: not given."""
    for name, value in options.items():
        if value is not None and not (isinstance(value, Real) and math.isfinite(value)):
            or_word = f", {BEST_F1!r} or an aim such as 'precision=0.9'" if name == "score" else ""
            raise UsageError(f"{name} must be a finite number{or_word}, got {quoted_value(value)}")


def require_lists(**options: object) -> None:
    """Refuse a single value, a text too, where several can stand; None means: not given."""
    for name, value in options.items():
        if value is not None and (isinstance(value, str) or not isinstance(value, Iterable)):
            raise UsageError(f"{name} must be a list, such as [{quoted_value(value)}], got {quoted_value(value)}")


ENGINES = ("auto", "memory", "disk", "dask")
LEAST_MEMORY = 256 * 2**20  # bytes: below it, libraries alone take most of it
_SIZE = pattern(r"(\d+(?:\.\d+)?) ?(B|[KMGT]i?B?)?", re.IGNORECASE)
_UNITS = ("", "k", "m", "g", "t")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Where work is done, in which portions and by how many: nothing of it changes a result, or is recorded in one.

    Parameters
    ----------
    engine : {"auto", "memory", "disk", "dask"}
        "auto" takes the disk where predictions would not fit into the memory limit, and a cluster only with a `client`.
    memory_limit : int or str, optional
        Bytes, or a text such as "2GiB"; by default 60 % of what the container or the machine has.
    workers : int, optional
        Threads of the disk engine; as many as there are processors if None.
    scratch : path, optional
        Folder for what does not fit into memory; that of temporary files if None.
    keep_scratch : bool
        Leave the files there.
    scheduler : str or path, optional
        Address of a Dask scheduler, or its file; what Dask is configured with if None.
    tls_ca, tls_cert, tls_key : path, optional
        Certificates and key for a scheduler at a ``tls://`` address; those that Dask is configured with if None.
    retries : int
        How often a task is repeated after an error.
    no_worker_timeout : float
        Seconds without any worker after which the run ends.
    client : distributed.Client, optional
        A client of the cluster to use.
    """

    engine: str = _option(
        "Where predictions are kept; auto: on disk if they would not fit into memory.",
        default="auto",
        group="engine",
        choices=ENGINES,
    )
    memory_limit: int | str | None = _option(
        "Memory to use, such as 2GiB (default: 60 % of the machine's).", group="engine"
    )
    workers: int | None = _option("Threads of the disk engine (default: one per processor).", group="engine")
    scratch: PathText | None = _option("Folder for files of the engine; of a cluster, also URL.", group="engine")
    keep_scratch: bool = _option("Leave these files, and print where.", default=False, group="engine")
    scheduler: PathText | None = _option("Dask scheduler: tcp://HOST:PORT, tls://... or its file.", group="engine")
    tls_ca: PathText | None = _option("Certificate authority of a tls:// scheduler.", group="engine")
    tls_cert: PathText | None = _option("Certificate for a tls:// scheduler.", group="engine")
    tls_key: PathText | None = _option("Key for a tls:// scheduler.", group="engine")
    retries: int = _option("Repeat a task of a cluster N times after an error (default 3).", default=3, group="engine")
    no_worker_timeout: float = _option(
        "Stop after this long without a Dask worker (default 120).", default=120, group="engine"
    )
    client: Any = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            hint = did_you_mean(self.engine, ENGINES)
            raise UsageError(f"engine must be one of {', '.join(ENGINES)}, got {quoted_value(self.engine)}.{hint}")
        if self.client is not None and self.engine not in ("auto", "dask"):
            raise UsageError(f"client is for the engine dask; got engine {quoted_value(self.engine)}")
        of_cluster = ("scheduler", "tls_ca", "tls_cert", "tls_key")
        beyond = [name for name in of_cluster if getattr(self, name) is not None]
        if beyond and self.engine != "dask":
            fix = Fix.missing("Pass {engine}.", engine="dask")
            raise UsageError(f"{', '.join(beyond)}: for the engine dask only.", fix=fix)
        require_effect(changed(self), "engines", {"": "dask" if self.client is not None else self.engine})
        if not isinstance(self.retries, int) or self.retries < 0:
            raise UsageError(f"retries must be a whole number of at least 0, got {quoted_value(self.retries)}")
        if not self.no_worker_timeout >= 0:
            raise UsageError(f"no_worker_timeout must not be negative, got {quoted_value(self.no_worker_timeout)}")
        if self.workers is not None and (not isinstance(self.workers, int) or self.workers < 1):
            raise UsageError(f"workers must be a whole number of at least 1, got {quoted_value(self.workers)}")
        if self.memory_limit is not None and self.bytes < LEAST_MEMORY:
            raise UsageError(f"memory_limit must be at least 256MiB, got {quoted_value(self.memory_limit)}")

    @property
    def bytes(self) -> int:
        """The memory limit in bytes; 0 where none is given."""
        if self.memory_limit is None or isinstance(self.memory_limit, int):
            return int(self.memory_limit or 0)
        found = _SIZE.fullmatch(self.memory_limit.strip())
        if found is None:
            given = quoted_value(self.memory_limit)
            raise UsageError(f"memory_limit must be a size such as 512MiB or 2GiB, got {given}")
        unit = (found[2] or "").lower()
        base = 1024 if "i" in unit else 1000
        return int(float(found[1]) * base ** _UNITS.index(unit.rstrip("ib")))

    @property
    def is_automatic(self) -> bool:
        """Whether nobody named an engine."""
        return self.engine == "auto" and self.client is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Without what options cannot have an effect, whatever the boxes are; empty for what does not matter."""

    options: tuple[str, ...]
    kinds: tuple[str, ...] = ()  # iou types
    formats: tuple[str, ...] = ()  # of a side
    engines: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()  # what an input has to have
    outputs: tuple[str, ...] = ()  # suffixes of files


# Tables, and lines of numbers: fields and columns of all others have names or places that do not change.
_OF_COLUMNS = ("arrow", "csv", "hf", "masktable", "openimages", "parquet", "records", "text", "yolo")
NEEDS = (  # one list, of which the checks, the page and its test are made
    Needs(options=("sigmas", "keypoint_order"), kinds=("keypoints",)),
    Needs(options=("dilation_ratio",), kinds=("boundary",)),
    Needs(options=("angle",), kinds=("bbox", "obb", "probiou")),
    Needs(options=("mask_axes",), kinds=("bbox", "segm", "boundary", "obb", "probiou")),
    Needs(options=("columns",), formats=_OF_COLUMNS),
    Needs(options=("split",), inputs=("splits",)),
    Needs(options=("origin",), inputs=("numbers in pixels",)),
    Needs(options=("names",), inputs=("classes without names",)),
    Needs(options=("angle",), inputs=("angles to read",)),
    Needs(options=("gallery",), outputs=(".html", ".htm")),
    Needs(options=("title", "suspects", "images"), outputs=(".html", ".htm", "/")),
    Needs(options=("thumbnails",), outputs=("/",)),
    Needs(options=("hierarchy", "image_labels", "class_descriptions"), formats=("openimages",)),
    Needs(options=("scratch", "keep_scratch"), engines=("auto", "disk", "dask")),
    Needs(options=("retries", "no_worker_timeout"), engines=("dask",)),
)
EXEMPT: ContextVar[Collection[str]] = ContextVar("EXEMPT", default=())
# What several evaluations with the same options cannot use, by option and aspect; None where one runs alone.
IDLE: ContextVar[dict[tuple[str, str], list[UsageError]] | None] = ContextVar("IDLE", default=None)


@contextmanager
def exempting(names: Iterable[str]) -> Iterator[None]:
    """Accept options that may have no effect in one run, as others use them."""
    token = EXEMPT.set((*EXEMPT.get(), *names))
    try:
        yield
    finally:
        EXEMPT.reset(token)


@contextmanager
def sharing_options(n: int) -> Iterator[None]:
    """Refuse an option that none of `n` evaluations can use, once all of them have run."""
    idle: dict[tuple[str, str], list[UsageError]] = {}
    token = IDLE.set(idle)
    try:
        yield
    finally:
        IDLE.reset(token)
    for errors in idle.values():
        if len(errors) == n:
            raise errors[0]


def require_effect(given: Iterable[str], aspect: str, found: Mapping[str, str | frozenset[str]]) -> None:
    """Refuse options that cannot have an effect; those of a side are known as ``gt_columns``.

    `found` has the kind, the formats or the engine, as the `aspect` is, by side; one that both share is of both. Of
    inputs and outputs it has all that they are.
    """
    for name in given:
        side, _, rest = name.partition("_")
        option = rest if side in ("gt", "pred") else name
        values = [found[side]] if side in found else [*found.values()]
        for needs in NEEDS if {name, option}.isdisjoint(EXEMPT.get()) else ():
            wanted = getattr(needs, aspect)
            if option not in needs.options or not wanted:
                continue
            if aspect in ("inputs", "outputs"):
                idle = ["" for value in values if {*wanted}.isdisjoint(value)]
            else:
                idle = [str(value) for value in values if value in _KNOWN.get(aspect, values) and value not in wanted]
            if len(idle) < len(values):
                continue
            change = {"kinds": "iou_type", "engines": "engine"}.get(aspect, "")
            words, more = f"Remove {{{name}}}", {change: wanted} if change else {}
            words += f", or pass {{{change}}}." if change else "."
            what = change.replace("_", " ") or "the format"
            why = f"{what} is {' and '.join(dict.fromkeys(idle))}"
            if aspect == "inputs":
                why = f"the input has no {wanted[0]}"
            elif aspect == "outputs":
                why = "no output is a folder (report/)" if wanted[0] == "/" else f"no output is an {wanted[0]} file"
            detail = f"an option cannot have an effect, as {why}."
            error = UsageError(detail, fix=Fix.missing(words, **{name: None}, **more))
            if (together := IDLE.get()) is None:
                raise error
            together.setdefault((name, aspect), []).append(error)


# What a package adds may use any option.
_KNOWN = {"kinds": ("bbox", "segm", "boundary", "keypoints", "obb", "probiou")}


def given_reading(options: SideOptions) -> tuple[str, ...]:
    """Return what is asked of reading by the names of the command line: what both sides share is named once."""
    sides = (("gt", options.gt_options), ("pred", options.pred_options))
    given = [(side, name, getattr(how, name)) for side, how in sides if how is not None for name in changed(how)]
    n_of = Counter((name, repr(value)) for _, name, value in given)
    return tuple(
        dict.fromkeys(
            name if name in _SHARED or (name in _EITHER and n_of[name, repr(value)] == len(sides)) else f"{side}_{name}"
            for side, name, value in given
            if name in _READING
        )
    )


_READING = frozenset(known.name for known in fields(ReadOptions) if known.metadata)
_SHARED = frozenset(known.name for known in fields(ReadOptions) if [*known.metadata.get("help", ())] == ["both"])
_EITHER = frozenset(
    known.name for known in fields(ReadOptions) if [*known.metadata.get("help", ())] == ["both", "side"]
)
