"""What a message of the library advises is Python, and helps when it is followed."""

import ast
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jaccard_eval
from jaccard_eval import BoxTable, CompareOptions, Gates, JaccardEvalError, JaccardEvalWarning, ReadOptions
from jaccard_eval.api.streaming import KEYWORDS
from jaccard_eval.cli.run import run
from jaccard_eval.fixes import COMMAND, FLAGS, ON, READING, Fix, Keys, Keywords, Value
from jaccard_eval.options import ReadOptions as Options

PACKAGE = Path(jaccard_eval.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z]")
NAMES = {"ReadOptions": ReadOptions, "CompareOptions": CompareOptions, "Gates": Gates}


def texts() -> Iterator[tuple[str, str]]:
    """All strings of the package that no command line, and no report, prints by itself; not those of docstrings."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        if parts[0] in ("cli", "report") or path.name.endswith("report.py") or path.name in ("fixes.py", "gallery.py"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        owners = (ast.Module, ast.FunctionDef, ast.ClassDef)
        bodies = (node.body for node in ast.walk(tree) if isinstance(node, owners))
        docstrings = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield str(path.relative_to(PACKAGE)), node.value


def test_no_text_of_the_package_names_an_option_of_the_command_line() -> None:
    found = {(path, text) for path, text in texts() if OPTION.search(text) or text.endswith("--")}
    # Commands are data as well, and words of another program are nobody's options.
    others = {text for _, text in found if not text.startswith(("panoptic GT PRED", "partition GT PRED"))}
    assert {text for text in others if "dask worker" not in text} == set()


def fix(words: str, **options: Value) -> Fix:
    return Fix.missing(words, **options)


EVALUATE = {
    "pred_options",
    "gt_options",
    "pred_format",
    "gt_format",
    "extra_images",
    "class_map",
    "max_dets",
    "iou",
    "allow",
}


@pytest.mark.parametrize(
    ("advice", "keywords", "flags", "python"),
    [
        (fix("Use {pred_box}.", pred_box="xyxy"), EVALUATE, "--pred-box xyxy", 'pred_options=ReadOptions(box="xyxy")'),
        (
            fix("Use {options}.", pred_box="xyxy", pred_units="norm", extra_images="ignore"),
            EVALUATE,
            "--pred-box xyxy --pred-units norm --extra-images ignore",
            'pred_options=ReadOptions(box="xyxy", units="norm"), extra_images="ignore"',
        ),
        (
            fix("Use {options}.", pred_keypoint_order="0,2,1"),
            EVALUATE,
            "--pred-keypoint-order 0,2,1",
            "pred_options=ReadOptions(keypoint_order=[0, 2, 1])",
        ),
        (
            fix("Use {class_map}.", class_map="a b=c,d=e"),
            EVALUATE,
            "--class-map 'a b=c,d=e'",
            'class_map={"a b": "c", "d": "e"}',
        ),
        (fix("Use {max_dets}.", max_dets="none"), EVALUATE, "--max-dets none", "max_dets=[]"),
        (fix("Use {iou}.", iou="0.5:0.6:0.05"), EVALUATE, "--iou 0.5:0.6:0.05", "iou=[0.5, 0.55, 0.6]"),
        (
            fix("Use {assume_score}.", assume_score="1.0"),
            {"role", "options"},
            "--assume-score 1.0",
            "options=ReadOptions(assume_score=1.0)",
        ),
        (
            fix("Use {gt_format} or {pred_format}.", gt_format=None, pred_format=None),
            EVALUATE,
            "--gt-format or --pred-format",
            "gt_format or pred_format",
        ),
        (
            fix("Use {gt_angle}.", gt_angle=("deg-cw", "deg-ccw")),
            EVALUATE,
            "--gt-angle deg-cw or --gt-angle deg-ccw",
            'gt_options=ReadOptions(angle="deg-cw" or angle="deg-ccw")',
        ),
        (
            fix("Use {bootstrap}.", bootstrap="1000"),
            {"options"},
            "--bootstrap 1000",
            "options=CompareOptions(bootstrap=1000)",
        ),
        (fix("Use {force}.", force=ON), {"replace"}, "--force", "replace=True"),
        (fix("Use {images}.", images=None), EVALUATE, "--images DIR", "gt_options=ReadOptions(images=...)"),
        (
            fix("Use {command}.", command="evaluate GT PRED -o result.json"),
            EVALUATE,
            "'jaccard-eval evaluate GT PRED -o result.json'",
            'evaluate(gt, pred).save("result.json")',
        ),
        (fix("Use {protocol}.", protocol="coco"), {"gt"}, "--protocol coco", 'evaluate(..., protocol="coco")'),
    ],
)
def test_options_are_worded_for_who_reads_them(advice: Fix, keywords: set[str], flags: str, python: str) -> None:
    assert advice.worded(FLAGS) == str(advice) == f"Use {flags}."
    assert advice.worded(Keywords(frozenset(keywords))) == f"Use {python}."


def test_a_configuration_is_told_its_keys() -> None:
    advice = Fix.reading({"pred_box": "xyxy", "drop_duplicates": ON}, metric="AP50", before=0.1, after=0.7)
    toml, yaml = Keys("jaccard-eval.toml", "evaluate"), Keys("a.yaml", "evaluate", is_yaml=True)
    assert (
        advice.worded(toml) == 'Rerun with pred-box = "xyxy", drop-duplicates = true (evaluate in jaccard-eval.toml).'
    )
    assert advice.worded(yaml) == 'Rerun with pred-box: "xyxy", drop-duplicates: true (evaluate in a.yaml).'


def test_what_is_left_out_is_said_so() -> None:
    advice = Fix.reading({"pred_resized": "", "pred_box": "xyxy"}, metric="AP50", before=0.1, after=0.7)
    assert str(advice) == "Rerun without --pred-resized and with --pred-box xyxy."


def test_who_has_no_such_option_is_told_what_to_do() -> None:
    box = Fix.reading({"pred_box": "xywh"}, metric="AP50", before=0.1, after=0.7)
    classes = Fix.reading({"class_map": "a=b"}, metric="pairs", before=0.1, after=0.7)
    assert box.worded(KEYWORDS) == 'Rerun with "encoding": "xywh" in the dicts.'
    assert classes.worded(KEYWORDS) == 'Rerun with labels that are renamed by {"a": "b"}.'


@pytest.mark.parametrize(("before", "after"), [(None, None), (0.5, None), (None, 0.5), (0.5, 0.5), (0.5, 0.4)])
def test_a_reading_that_was_not_measured_to_be_better_cannot_be_made(before: Any, after: Any) -> None:
    with pytest.raises(ValueError, match="measured"):
        Fix(kind=READING, options={"pred_box": "xyxy"}, words="Rerun {changes}.", before=before, after=after)


def test_what_is_missing_claims_no_number_and_names_all_of_its_options() -> None:
    with pytest.raises(ValueError, match="no number"):
        Fix(kind="missing", options={}, words="Pass it.", before=0.1, after=0.2)
    with pytest.raises(ValueError, match="names all"):
        Fix.missing("Pass it.", images=None)


# Options that read otherwise what was read. What they give is measured before they are named, but for these places.
READING_OPTIONS = frozenset(
    [
        "angle",
        "box",
        "class_map",
        "difficult",
        "drop_duplicates",
        "drop_inverted",
        "extra_images",
        "ignore",
        "keypoint_order",
        "mask_axes",
        "match_images",
        "max_dets",
        "origin",
        "resized",
        "units",
    ]
)
BEFORE_PAIRS = "one side is read, whose boxes lie on nothing yet"
CONTRADICT = "what the caller asks for contradicts itself: nothing was read"
WRITTEN = "how to read a file back that was just written"
UNMEASURED = {
    "data/alignment.py extra_images": "which images are in a set, only its owner knows; where boxes tell ways, they do",
    "data/alignment.py match_images": "images have no pairs yet: what boxes tell is added by the failed run's checks",
    "data/alignment.py class_map": "an example of a map, which only its owner knows",
    "data/alignment.py gt_class_map": "which classes are one, only their owner knows",
    "data/resizing.py resized": CONTRADICT,
    "data/resizing.py units": CONTRADICT,
    "engine/choice.py **named": "it names the engine and the kinds of errors only",
    "features/audit/boxes.py **changed": "it was measured, and is no better",
    "features/audit/correspondence.py extra_images": "images of another set, or not: boxes on none tell neither",
    "features/audit/correspondence.py pred_resized": "what the masks of the same file have, to be checked by the user",
    "features/audit/shapes.py **{option: ('wh', 'transposed')}": "both were measured, and neither is better",
    "features/audit/correspondence.py class_map": "pairs that the boxes show, and those that they do not",
    "features/audit/resizing.py **prefixed": "it was measured, but others near it are as probable: the user knows",
    "features/pixels/counting.py gt_class_map": "what values are, only their owner knows: it begins with if",
    "features/pixels/counting.py ignore": "as gt_class_map",
    "fixes.py **named": "what `of_side` was called with, which is looked at there",
    "fixes.py **options": "it was measured, and is no better",
    "formats/_doubt.py **options": "it names formats only",
    "formats/_yolo/reader.py box": BEFORE_PAIRS,
    "formats/_yolo/reader.py units": BEFORE_PAIRS,
    "formats/_yolo/writer.py box": WRITTEN,
    "formats/_yolo/writer.py units": WRITTEN,
    "formats/masktable.py **sizes_of": "the sizes of images are missing, which only the user has",
    "formats/openimages.py units": BEFORE_PAIRS,
    "formats/shapetext.py box": BEFORE_PAIRS,
    "formats/vlm.py units": "what numbers count is asked before there are pairs; those that large can be pixels alone",
    "inputs.py gt_box": "without sizes of images both readings are possible, so that neither is advised",
    "inputs.py pred_box": "as gt_box",
    "options.py **more": "it names what is compared, or the engine",
    "reading/draft.py keypoint_order": CONTRADICT,
    "reading/draft.py units": CONTRADICT,
    "reading/in_images.py units": BEFORE_PAIRS,
    "reading/labelmaps.py class_map": "no class is read yet: what greys mean is measured where both sides are maps",
    "reading/labelmaps.py gt_class_map": "as class_map",
    "reading/oriented.py angle": BEFORE_PAIRS,
    "reading/rawboxes.py **asked": BEFORE_PAIRS,
    "reading/rawboxes.py box": BEFORE_PAIRS,
    "reading/draft.py **options": "those of another fix, which is looked at where it is made",
    "reading/tabular/table.py units": BEFORE_PAIRS,
    "reading/tabular/columns.py **given": "it names columns and classes only",
    "reading/tabular/writer.py units": WRITTEN,
    "similarity/keypoints.py **options": "it names sigmas and protocols only",
}


def unmeasured() -> Iterator[str]:
    """Yield where an option that reads otherwise has a value in a fix that claims no number."""
    sources = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    for path, source in sources.items():
        for node in ast.walk(ast.parse(source)) if "Fix.missing(" in source or ".of_side(" in source else ():
            if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") not in ("missing", "of_side"):
                continue
            for keyword in node.keywords:
                name, value = keyword.arg or "", ast.unparse(keyword.value)
                # An option without a value names what only the user knows.
                if re.sub("^(gt|pred)_", "", name) in READING_OPTIONS and value != "None":
                    yield f"{path.relative_to(PACKAGE).as_posix()} {name}"
                elif not name and not value.endswith(": None}") and "fromkeys" not in value:
                    yield f"{path.relative_to(PACKAGE).as_posix()} **{value}"


def test_a_reading_is_measured_or_it_is_known_why_not() -> None:
    assert {*unmeasured()} == {*UNMEASURED}


def test_the_fields_of_a_side_are_those_of_its_options() -> None:
    internal = {"role", "regions", "whole_bodies"}  # set by what is evaluated
    shared = {f"pred_{name}" for name in Options.__dataclass_fields__ if name not in internal}
    advice = Fix.missing("Use {options}.", **dict.fromkeys(sorted(shared), "x"))
    text = advice.worded(Keywords(frozenset({"pred_options"})))
    assert text.startswith("Use pred_options=ReadOptions(") and text.count("(") == 1


def test_commands_are_calls() -> None:
    advice = Fix.missing("Use {command}.", **{COMMAND: "panoptic GT PRED --against OTHER"})
    assert advice.worded(Keywords(frozenset())) == "Use panoptic(gt, pred, against=other)."


GT = BoxTable.from_arrays(
    [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1], [[10 * i, 5 * i, 10 * i + 30, 5 * i + 20] for i in range(6)]
)
COCO: Mapping[str, Any] = {
    "images": [{"id": i, "file_name": f"{i}.jpg", "width": 640, "height": 480} for i in (1, 2)],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0},
        {"id": 2, "image_id": 2, "category_id": 2, "bbox": [5, 5, 10, 10], "area": 100, "iscrowd": 0},
    ],
    "categories": [{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}],
}
RESULTS = [
    {"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "score": 0.9},
    {"image_id": 2, "category_id": 2, "bbox": [5, 5, 10, 10], "score": 0.8},
]
FRAME = pd.DataFrame(
    {"image": ["1.jpg", "2.jpg"], "class": ["dog", "cat"], "xmin": [0, 5], "ymin": [0, 5], "xmax": [10, 15]}
    | {"ymax": [10, 15]}
)


def without_scores(**keywords: Any) -> Any:
    return jaccard_eval.evaluate(COCO, FRAME, **keywords)


def unknown_image(**keywords: Any) -> Any:
    return jaccard_eval.evaluate(COCO, [*RESULTS, {**RESULTS[0], "image_id": 99}], **keywords)


def unknown_score_column(**keywords: Any) -> Any:
    return jaccard_eval.evaluate(COCO, FRAME.assign(how_sure=[0.9, 0.8]), **keywords)


def corners_as_sizes(**keywords: Any) -> Any:
    """Predictions whose boxes are corners, in columns of sizes."""
    rng = np.random.default_rng(0)
    left, size = rng.uniform(50, 400, (60, 2)), rng.uniform(40, 90, (60, 2))
    images, labels = [f"{1 + i % 2}.jpg" for i in range(60)], ["dog"] * 60
    gt = pd.DataFrame({"image": images, "class": labels} | dict(zip("xy", left.T, strict=True)))
    gt = gt.assign(width=size[:, 0], height=size[:, 1])
    pred = gt.assign(width=(left + size)[:, 0], height=(left + size)[:, 1], score=np.linspace(0.5, 1, 60))
    return jaccard_eval.evaluate(gt, pred, **keywords)


CALLS: tuple[tuple[Callable[..., Any], str], ...] = (
    (without_scores, "pred_options=ReadOptions(assume_score=1.0)"),
    (unknown_image, 'extra_images="ignore"'),
    (unknown_score_column, 'pred_options=ReadOptions(columns="score=how_sure")'),
    (corners_as_sizes, 'pred_options=ReadOptions(box="xyxy")'),
)


@pytest.mark.parametrize(("call", "advice"), CALLS, ids=lambda item: getattr(item, "__name__", ""))
def test_advice_that_is_followed_helps(call: Callable[..., Any], advice: str) -> None:
    with warnings.catch_warnings(), pytest.raises((JaccardEvalError, JaccardEvalWarning)) as caught:
        warnings.simplefilter("error", JaccardEvalWarning)
        call()
    message = str(caught.value)
    assert advice in message
    assert not OPTION.search(message)
    keywords = eval(f"dict({advice})", dict(NAMES))
    assert call(**keywords)["AP50"] == pytest.approx(1.0)


def test_a_metric_that_was_not_measured_names_the_keyword_that_asks_for_it() -> None:
    result = jaccard_eval.evaluate(COCO, RESULTS)
    with pytest.raises(jaccard_eval.UsageError, match=r"Evaluate with iou=\[0\.33\]") as caught:
        result["AP[iou=0.33]"]
    keywords = eval(f"dict({re.search('iou=[^)]*]', str(caught.value))[0]})")  # type: ignore[index]
    assert jaccard_eval.evaluate(COCO, RESULTS, **keywords)["AP[iou=0.33]"] == pytest.approx(1.0)


def test_the_text_of_a_warning_names_keywords_and_its_finding_stays_as_documents_have_it() -> None:
    table = FRAME.assign(score=[0.9, 0.8])
    table = pd.concat([table, table], ignore_index=True)
    with pytest.warns(JaccardEvalWarning, match="drop_duplicates=True") as issued:
        result = jaccard_eval.evaluate(COCO, table)
    (warning,) = (message.message for message in issued if "pred-duplicate" in str(message.message))
    assert isinstance(warning, JaccardEvalWarning)
    assert "--drop-duplicates" in warning.finding.message
    assert warning.finding in result.findings


BOX = np.array([[0.0, 0.0, 10.0, 10.0]])
DETECTED = {"boxes": BOX, "labels": np.array([1]), "scores": np.array([0.5])}
DRAWN = {"boxes": BOX, "labels": np.array([1])}
SWAPPED: tuple[tuple[Any, Any], ...] = (
    (FRAME, FRAME.assign(score=[0.9, 0.8])),
    (COCO, RESULTS),
    ([DRAWN], [DETECTED]),
    (BoxTable.from_arrays([0], [0], BOX), BoxTable.from_arrays([0], [0], BOX, score=[0.5])),
)


@pytest.mark.parametrize(("gt", "pred"), SWAPPED, ids=["DataFrame", "COCO", "dicts", "BoxTable"])
def test_sides_that_are_swapped_in_memory_are_called_so(gt: Any, pred: Any) -> None:
    with pytest.raises(jaccard_eval.DataError, match="the two sides are swapped") as caught:
        jaccard_eval.evaluate(pred, gt)
    assert [finding.code for finding in caught.value.findings] == ["sides-swapped"]
    assert jaccard_eval.evaluate(gt, pred)["AP50"] == pytest.approx(1.0)


def test_the_order_of_torchmetrics_is_told_the_signature() -> None:
    with pytest.raises(jaccard_eval.UsageError, match=r"Call update\(images, preds, targets\)"):
        jaccard_eval.Evaluator().update([DETECTED], [DRAWN])  # type: ignore[list-item]


def test_a_missing_score_and_boxes_that_cannot_be_are_reported_in_one_pass() -> None:
    inverted = FRAME.assign(xmax=[-10, -15])
    with pytest.raises(jaccard_eval.DataError) as caught:
        jaccard_eval.evaluate(COCO, inverted)
    assert {finding.code for finding in caught.value.findings} == {"score-missing", "box-negative"}


def test_unknown_sizes_and_unknown_classes_are_reported_in_one_pass() -> None:
    frame = FRAME.assign(score=[0.9, 0.8], **{"class": ["a", "b"], "xmax": [0.1, 0.2], "ymax": [0.1, 0.2]})
    frame = frame.assign(xmin=[0.0, 0.05], ymin=[0.0, 0.05])
    unsized = {**COCO, "images": [{"id": i, "file_name": f"{i}.jpg"} for i in (1, 2)]}
    with pytest.raises(jaccard_eval.DataError) as caught:
        jaccard_eval.evaluate(unsized, frame, pred_options=ReadOptions(units="norm"))
    assert {finding.code for finding in caught.value.findings} == {"size-unknown", "class-none"}


def test_who_uses_a_configuration_is_told_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("gt.csv", index=False)
    FRAME.assign(xmax=FRAME["xmax"] + 1).to_csv("pred.csv", index=False)  # no copy of the labels
    Path("jaccard-eval.toml").write_text('[evaluate]\ngt = "gt.csv"\npred = "pred.csv"\n')
    assert run(["evaluate"]) == 3
    assert 'pass assume-score = "1.0" (evaluate in jaccard-eval.toml)' in capsys.readouterr().err
    assert run(["evaluate", "--isolated", "gt.csv", "pred.csv"]) == 3
    assert "pass --assume-score 1.0" in capsys.readouterr().err
