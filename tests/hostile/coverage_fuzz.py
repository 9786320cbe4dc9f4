"""Coverage-guided fuzzing of the parsers written here, by hand: needs atheris, which is not a test dependency.

    pip install atheris
    python tests/hostile/coverage_fuzz.py metrics -max_total_time=180 -timeout=10

The first word is a target; what follows is for libFuzzer: -seed=7, -runs=100000, or the file of a crash to repeat it.
`test_coverage_fuzz.py` runs every target on a few inputs without atheris.
"""

import functools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

Target = Callable[[bytes], None]
ROLES = ("gt", "pred")


def of_texts(*names: str) -> Target:
    """Parse the text of an option: a value, or a UsageError with a message."""
    import importlib

    from jaccard_eval.errors import UsageError

    places = (name.rpartition(".") for name in names)
    parsers = [getattr(importlib.import_module(module), name) for module, _, name in places]

    def run(data: bytes) -> None:
        text = data[1:].decode("utf-8", "surrogateescape")
        try:
            parsers[data[0] % len(parsers)](text)
        except UsageError as error:
            assert str(error)

    return run


def of_metrics() -> Target:
    """Parse a reference to a metric: what is read prints as itself."""
    from jaccard_eval.data.metricref import MetricRef, canonical, split_ref
    from jaccard_eval.errors import UsageError

    def run(data: bytes) -> None:
        text = data[1:].decode("utf-8", "surrogateescape")
        try:
            canonical(text)
            split_ref(text)
            ref = MetricRef.parse(text)
        except UsageError as error:
            assert str(error)
            return
        assert MetricRef.parse(str(ref)) == ref
        assert str(MetricRef.parse(str(ref))) == str(ref)

    return run


def of_inputs(*formats: str) -> Target:
    """Read a file of one of some formats, as either role: a sound dataset or a clear error."""
    from soundness import require_sound_or_refused

    from jaccard_eval.options import ReadOptions

    folder = scratch()

    def run(data: bytes) -> None:
        name, role = formats[data[0] // 2 % len(formats)], ROLES[data[0] % 2]
        path = folder / name / "a.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data[1:])
        is_file = name in ("csv", "text", "kerasyolo", "nwpu", "retinaface", "openimages", "widerface", "coco", "cvat")
        require_sound_or_refused(path if is_file else path.parent, ReadOptions(role=role), name)

    return run


def of_files() -> Target:
    """Read files of settings: names, colours, boxes, configurations."""
    from jaccard_eval.cli import config, gating, parse
    from jaccard_eval.errors import UsageError
    from jaccard_eval.findings import DataError, FindingLog
    from jaccard_eval.reading import labelmaps, lines, names

    folder = scratch()
    readers: tuple[tuple[str, Callable[[Path], object]], ...] = (
        ("a.txt", lambda path: names.read_names(path, FindingLog())),
        ("a.yaml", lambda path: names.read_names(path, FindingLog())),
        ("a.txt", labelmaps.read_color_table),
        ("a.txt", lambda path: lines.read_box_list(path, "xyxy")),
        ("a.txt", lambda path: lines.read_box_list(path, "xywh")),
        ("a.toml", config.read_config),
        ("a.yaml", config.read_config),
        ("a.toml", lambda path: gating.load_gates(config.read_config(path))),
        ("a.yaml", lambda path: gating.load_gates(config.read_config(path))),
        ("a.json", lambda path: parse.parse_class_map(str(path))),
        ("a.yaml", lambda path: parse.parse_class_map(str(path))),
    )

    def run(data: bytes) -> None:
        name, read = readers[data[0] % len(readers)]
        (folder / name).write_bytes(data[1:])
        try:
            read(folder / name)
        except (UsageError, DataError) as error:
            assert str(error)

    return run


def scratch() -> Path:
    memory = Path("/dev/shm")  # for thousands of files a second
    return Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() else None))


OPTION_PARSERS = (
    *(f"jaccard_eval.cli.parse.parse_{name}" for name in ("iou", "max_dets", "areas", "names", "score", "sort")),
    *(f"jaccard_eval.cli.parse.parse_{name}" for name in ("number", "numbers", "whole")),
    "jaccard_eval.reading.tabular.columns.read_naming",
)
TARGETS: dict[str, Callable[[], Target]] = {
    "metrics": of_metrics,
    "options": functools.partial(of_texts, *OPTION_PARSERS),
    "settings": of_files,
    "yolo": functools.partial(of_inputs, "yolo"),
    "tables": functools.partial(of_inputs, "csv", "openimages"),
    "text": functools.partial(of_inputs, "text", "kerasyolo"),
    "lines": functools.partial(
        of_inputs, "kitti", "dota", "visdrone", "nwpu", "retinaface", "widerface", "mot", "shapetext"
    ),
    "documents": functools.partial(of_inputs, "coco", "cvat"),
}
SEEDS: dict[str, tuple[bytes, ...]] = {
    "metrics": (b"\0AP50", b'\0recall[iou=0.5,score=0.4,class="a, b"]', b"\0mAP@[.5:.95]", b"\0AP[area=small]"),
    "options": tuple(
        bytes([i]) + text
        for i in range(len(OPTION_PARSERS))
        for text in (b"0.5:0.95:0.05", b"1,10,none", b"small=0:32^2,large=1:inf", b'"a,b",c', b"class=a,score=b")
    ),
    "settings": tuple(
        bytes([i]) + text
        for i in range(11)
        for text in (
            *(b"dog\ncat\n", b"names: {0: dog}\n", b"0 0 255 road\n#00ff00 car\n", b"1,2,3,4\n# x\n5 6 7 8\n"),
            *(b'[[gates.rules]]\nmetric = "AP"\nmin = 0.5\n', b"gates: {rules: [{metric: AP, min: 0.1}]}\n"),
            *(b"[evaluate]\niou = [0.5]\n", b'{"dog": "cat"}'),
        )
    ),
    "yolo": (
        b"\0" + b"0 0.5 0.5 0.2 0.2\n",
        b"\1" + b"0 0.5 0.5 0.2 0.2 0.9\n",
        b"\0" + b"1 0.1 0.1 0.2 0.1 0.2 0.3\n",
    ),
    "tables": (
        b"\0image,class,xmin,ymin,xmax,ymax\na.jpg,dog,1,2,3,4\n",
        b"\1image;bbox;class;score\na;[1, 2, 3, 4];dog;0,5\n",
        b"\1image_id,PredictionString\na,dog 0.5 1 2 3 4\n",
        b"\2ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf\na,/m/1,0,1,0,1,0\n",
    ),
    "text": (b"\0a.jpg dog 1 2 3 4\n", b"\1a.jpg dog 0.5 1 2 3 4\n", b"\2a.jpg 1,2,3,4,0 5,6,7,8,1\n"),
    "lines": (
        b"\0Car 0.00 0 -1.57 1 2 30 40 1 1 1 1 1 1 0\n",
        b"\2imagesource:x\ngsd:1\n1 1 2 1 2 2 1 2 car 0\n",
        b"\x041,2,3,4,1,4,0,0\n",
        b"\6# a.jpg\n1 2 3 4 0 0 1\n",
        b"\x08a.jpg\n1\n1 2 3 4 0 0 0 0 0 0\n",
        b"\x0a1,1,2,3,4,5,1,-1,-1,-1\n",
    ),
    "documents": (
        b'\0{"images":[{"id":1}],"annotations":[{"id":1,"image_id":1,"category_id":1,"bbox":[1,2,3,4]}],"categories":[{"id":1,"name":"a"}]}',
        b'\1[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":0.5}]',
        b'\2<annotations><image name="a" width="9" height="9">'
        b'<box label="x" xtl="1" ytl="1" xbr="2" ybr="2"/></image></annotations>',
    ),
}


def main() -> None:
    """Hand a target to libFuzzer, with the project instrumented."""
    import atheris

    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["jaccard_eval"]):
        target = TARGETS[name]()
        for seed in SEEDS[name]:  # loads the formats, which are imported when they are needed
            target(seed)
    corpus = Path(tempfile.mkdtemp(prefix=f"corpus-{name}-"))
    for i, seed in enumerate(SEEDS[name]):
        (corpus / str(i)).write_bytes(seed)
    atheris.Setup(
        [*sys.argv, str(corpus)] if not Path(sys.argv[-1]).is_file() else sys.argv, lambda data: data and target(data)
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
