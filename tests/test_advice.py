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
from jaccard_eval.api.keywords import in_python

PACKAGE = Path(jaccard_eval.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z]")
NAMES = {"ReadOptions": ReadOptions, "CompareOptions": CompareOptions, "Gates": Gates}


def texts() -> Iterator[tuple[str, str]]:
    """All strings of the package that no command line, and no report, prints by itself; not those of docstrings."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        if parts[0] in ("cli", "report") or path.name.endswith("report.py") or path.name == "keywords.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        owners = (ast.Module, ast.FunctionDef, ast.ClassDef)
        bodies = (node.body for node in ast.walk(tree) if isinstance(node, owners))
        docstrings = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield str(path.relative_to(PACKAGE)), node.value


def test_no_option_of_the_command_line_is_left_in_any_message() -> None:
    found = {(path, text) for path, text in texts() if OPTION.search(text)}
    assert len(found) > 30
    left = {(path, in_python(text)) for path, text in found if OPTION.search(in_python(text))}
    assert left == set()


@pytest.mark.parametrize(
    ("message", "keywords", "expected"),
    [
        ("Rerun with --pred-box xyxy.", {"pred_options"}, 'Rerun with pred_options=ReadOptions(box="xyxy").'),
        (
            "Rerun with --pred-box xyxy --pred-units norm --extra-images ignore.",
            {"pred_options"},
            'Rerun with pred_options=ReadOptions(box="xyxy", units="norm"), extra_images="ignore".',
        ),
        (
            "Rerun with --pred-keypoint-order 0,2,1.",
            {"pred_options"},
            "Rerun with pred_options=ReadOptions(keypoint_order=[0, 2, 1]).",
        ),
        ("Rerun with --class-map 'a b=c,d=e'.", {}, 'Rerun with class_map={"a b": "c", "d": "e"}.'),
        ("Rerun with --class-map id+1.", {}, 'Rerun with class_map="id+1".'),
        ("--max-dets none counts all.", {}, "max_dets=[] counts all."),
        ("Evaluate with --iou 0.5:0.6:0.05.", {}, "Evaluate with iou=[0.5, 0.55, 0.6]."),
        ("Evaluate with --iou 0.85.", {}, "Evaluate with iou=[0.85]."),
        ("add --allow box-encoding.", {}, 'add allow=["box-encoding"].'),
        ("pass --assume-score 1.0 to rank", {"role", "options"}, "pass options=ReadOptions(assume_score=1.0) to rank"),
        ("with --gt-format or --pred-format.", {}, "with format_name or format_name."),
        ("with --gt-format or --pred-format.", {"gt_format", "pred_format"}, "with gt_format or pred_format."),
        ("Name the classes (--gt-names): a", {"gt_options"}, "Name the classes (gt_options=ReadOptions(names=...)): a"),
        ("Add them with --bootstrap 1000.", {"options"}, "Add them with options=CompareOptions(bootstrap=1000)."),
        ("a file called a--b stays", {}, "a file called a--b stays"),
        (
            "Write it with 'jaccard-eval evaluate GT PRED -o result.json'.",
            {},
            'Write it with evaluate(gt, pred).save("result.json").',
        ),
    ],
)
def test_options_become_keywords(message: str, keywords: set[str], expected: str) -> None:
    assert in_python(message, keywords) == expected


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
