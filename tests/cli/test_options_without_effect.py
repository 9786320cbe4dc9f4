"""Options that cannot have an effect are errors where they are typed or passed; one list has what each needs."""

from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import ReadOptions, UsageError, compare, evaluate
from jaccard_eval.cli import run as _run
from jaccard_eval.options import NEEDS, EngineOptions, Needs, require_effect

ROOT = Path(__file__).parents[2]
COCO = ROOT / "sample_data" / "coco"
PAIR = (str(COCO / "gt.json"), str(COCO / "better.json"))
VALUES = {
    "sigmas": "0.1,0.2",
    "dilation_ratio": "0.01",
    "keypoint_order": "1,0",
    "angle": "deg-cw",
    "mask_axes": "yx",
    "columns": "class=a",
    "split": "train",
    "hierarchy": str(COCO / "gt.json"),
    "image_labels": str(COCO / "gt.json"),
    "class_descriptions": str(COCO / "gt.json"),
    "scratch": "scratch",
    "keep_scratch": "",
    "retries": "2",
    "no_worker_timeout": "7",
}
SIDED = {"keypoint_order", "angle", "mask_axes", "columns"}


def flags(option: str) -> list[str]:
    dashed = option.replace("_", "-")
    return [f"--gt-{dashed}", f"--pred-{dashed}"] if option in SIDED else [f"--{dashed}"]


def cell(needs: Needs) -> str:
    kinds = (("`--iou-type` ", needs.kinds), ("`--engine` ", needs.engines), ("format ", needs.formats))
    words, names = next(((words, names) for words, names in kinds if names), ("formats other than ", needs.not_formats))
    return words + ", ".join(f"`{name}`" for name in names)


TRIALS = [(needs, option, flag) for needs in NEEDS for option in needs.options for flag in flags(option)]
ELSEWHERE = {"angle": "segm", "mask_axes": "keypoints"}  # of a kind that this pair does not have; boxes may use them


@pytest.mark.parametrize(("needs", "option", "flag"), TRIALS, ids=[flag for _, _, flag in TRIALS])
def test_an_option_that_cannot_have_an_effect_is_an_error_that_names_it(
    needs: Needs, option: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if option in ELSEWHERE:
        with pytest.raises(UsageError, match=flag):
            require_effect([flag.strip("-").replace("-", "_")], "kinds", {"": ELSEWHERE[option]})
        return
    engine = ["--engine", "memory"] if needs.engines else []
    line = [*PAIR, flag, *filter(None, [VALUES[option]]), *engine]
    assert _run.run(["evaluate", *line]) == 2
    assert flag in capsys.readouterr().err


def test_the_page_has_the_list() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    rows = [
        f"| {', '.join(f'`{flag}`' for option in needs.options for flag in flags(option))} | {cell(needs)} |"
        for needs in NEEDS
    ]
    assert "\n".join(rows) in page


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"sigmas": [0.1, 0.2]}, "Remove sigmas"),
        ({"gt_options": ReadOptions(columns="class=a")}, r"gt_options=ReadOptions\(columns"),
        ({"pred_options": ReadOptions(keypoint_order=(1, 0))}, r"pred_options=ReadOptions\(keypoint_order"),
        ({"engine": "memory", "keep_scratch": True}, "keep_scratch"),
    ],
)
def test_a_keyword_of_the_library_is_refused_likewise(given: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=f"cannot have an effect.*{named}"):
        evaluate(*PAIR, **given)


def test_defaults_and_what_data_did_not_need_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--split", "val", "--max-dets", "none", "--skip-invalid", "--extra-images", "ignore", "--workers", "2"]
    assert _run.run(["evaluate", *PAIR, *given, "--memory-limit", "1GiB", "--isolated", "--allow", "max-dets"]) == 0
    assert "effect" not in capsys.readouterr().err
    EngineOptions(engine="auto", scratch="scratch")  # what is too large may go there


def test_keys_of_a_configuration_hold_for_all_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jaccard-eval.toml").write_text("[evaluate]\ngt-columns = 'class=a'\nsigmas = '0.1,0.2'\n")
    monkeypatch.chdir(tmp_path)
    assert _run.run(["evaluate", *PAIR]) == 0
    assert _run.run(["evaluate", *PAIR, "--pred-columns", "class=a"]) == 2
    assert "Remove pred-columns" in capsys.readouterr().err


def test_what_one_of_several_predictions_may_use_is_accepted() -> None:
    worse = str(COCO / "worse.json")
    assert compare(*PAIR, worse, pred_options=ReadOptions(columns="class=a")).to_dict()["kind"] == "comparison"


def test_numbers_have_nothing_to_be_read_by(capsys: pytest.CaptureFixture[str]) -> None:
    for given in (["--gt-names", "a"], ["--skip-invalid"], ["--match-images", "stem"]):
        assert _run.run(["overlap", "0,0,2,2", "0,0,2,1", *given]) == 2
        assert given[0] in capsys.readouterr().err
    assert _run.run(["overlap", "0,0,2,2", "0,0,2,1"]) == 0
