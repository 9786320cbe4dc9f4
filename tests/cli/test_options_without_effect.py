"""Options that cannot have an effect are errors where they are typed or passed; one list has what each needs."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import ReadOptions, UsageError, compare, evaluate, labels
from jaccard_eval.cli import run as _run
from jaccard_eval.options import NEEDS, EngineOptions, Needs, require_effect

ROOT = Path(__file__).parents[2]
COCO = ROOT / "sample_data" / "coco"
PAIR = (str(COCO / "gt.json"), str(COCO / "better.json"))
YOLO = (str(COCO.parent / "yolo" / "data.yaml"), str(COCO.parent / "yolo" / "better"))  # in fractions
VALUES = {
    "sigmas": "0.1,0.2",
    "dilation_ratio": "0.01",
    "keypoint_order": "1,0",
    "angle": "deg-cw",
    "names": "a,b",
    "mask_axes": "yx",
    "columns": "class=a",
    "split": "train",
    "origin": "1",
    "gallery": "3",
    "title": "Cars",
    "images": str(COCO),
    "suspects": str(COCO / "gt.json"),
    "hierarchy": str(COCO / "gt.json"),
    "image_labels": str(COCO / "gt.json"),
    "class_descriptions": str(COCO / "gt.json"),
    "scratch": "scratch",
    "keep_scratch": "",
    "thumbnails": "",
    "retries": "2",
    "no_worker_timeout": "7",
}
SIDED = {"keypoint_order", "angle", "mask_axes", "columns", "origin"}
EITHER = {"names"}  # given once, or of a side
VOC = (str(COCO.parent / "voc" / "gt"), str(COCO.parent / "voc" / "better"))  # which name their classes
MASKS = COCO.parent / "panoptic"


def flags(option: str) -> list[str]:
    dashed = option.replace("_", "-")
    both = [f"--{dashed}"] if option not in SIDED else []
    return both + ([f"--gt-{dashed}", f"--pred-{dashed}"] if option in SIDED | EITHER else [])


def cell(needs: Needs) -> str:
    kinds = (("`--iou-type` ", needs.kinds), ("`--engine` ", needs.engines), ("format ", needs.formats))
    words, names = next(((words, names) for words, names in kinds if names), ("`-o` ", needs.outputs))
    return words + ", ".join(f"`{name}`" for name in names) if names else f"an input with {needs.inputs[0]}"


TRIALS = [(needs, option, flag) for needs in NEEDS for option in needs.options for flag in flags(option)]
ELSEWHERE = {"angle": "segm", "mask_axes": "keypoints"}  # of a kind that this pair does not have; boxes may use them


@pytest.mark.parametrize(("needs", "option", "flag"), TRIALS, ids=[flag for _, _, flag in TRIALS])
def test_an_option_that_cannot_have_an_effect_is_an_error_that_names_it(
    needs: Needs, option: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if option in ELSEWHERE and needs.kinds:
        with pytest.raises(UsageError, match=flag):
            require_effect([flag.strip("-").replace("-", "_")], "kinds", {"": ELSEWHERE[option]})
        return
    engine = ["--engine", "memory"] if needs.engines else []
    # Images of boxes may give their sizes; those of segments are drawn on a page only.
    command = ["panoptic", str(MASKS / "gt.json"), str(MASKS / "better.json")] if option == "images" else ["evaluate"]
    pair = () if option == "images" else {"origin": YOLO, "names": VOC}.get(option, PAIR)
    assert _run.run([*command, *pair, flag, *filter(None, [VALUES[option]]), *engine]) == 2
    assert flag in capsys.readouterr().err


def test_the_page_has_the_list() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    rows = [
        f"| {', '.join(f'`{flag}`' for option in needs.options for flag in flags(option))}"
        f"{' of `panoptic`' * ('images' in needs.options)} | {cell(needs)} |"
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


def test_keys_for_two_sides_are_no_error_where_one_is_read_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = "match-images = 'stem'\npred-columns = 'class=a'\n"
    (tmp_path / "jaccard-eval.toml").write_text(f"[inspect]\n{keys}[convert]\nmatch-images = 'stem'\n")
    monkeypatch.chdir(tmp_path)
    assert _run.run(["inspect", VOC[0]]) == 0
    assert _run.run(["convert", VOC[0], "out.csv"]) == 0
    assert _run.run(["inspect", VOC[0], "--match-images", "name"]) == 2
    assert "as one input is inspected alone. Remove match-images" in capsys.readouterr().err


def test_an_option_on_predictions_reads_one_path_as_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    table = str(COCO.parent / "csv" / "better.csv")
    assert _run.run(["inspect", table, "--pred-columns", "class=class", "-q"]) == 0
    assert capsys.readouterr().out == "11 images, 49 boxes, 5 classes  (no warnings)\n"
    assert _run.run(["inspect", VOC[0], "--pred-names", "a"]) == 3


def test_names_are_used_by_the_side_that_only_numbers_its_classes(capsys: pytest.CaptureFixture[str]) -> None:
    names = "person,bicycle,car,cat,dog"
    assert _run.run(["evaluate", PAIR[0], YOLO[1], "--names", names]) == 0
    assert _run.run(["evaluate", PAIR[0], YOLO[1], "--pred-names", names]) == 0
    assert _run.run(["evaluate", PAIR[0], YOLO[1], "--names", names, "--gt-names", "a,b"]) == 2
    assert "the input has no classes without names. Remove --gt-names" in capsys.readouterr().err


def test_categories_without_any_name_take_the_given_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = json.loads(Path(PAIR[0]).read_text(encoding="utf-8"))
    row_of = {category["id"]: row for row, category in enumerate(truth["categories"])}
    names = ",".join(category["name"] for category in truth["categories"])
    truth["categories"] = [{"id": row} for row in row_of.values()]
    for annotation in truth["annotations"]:
        annotation["category_id"] = row_of[annotation["category_id"]]
    bare = tmp_path / "gt.json"
    bare.write_text(json.dumps(truth), encoding="utf-8")
    assert _run.run(["evaluate", str(bare), YOLO[1], "--names", names, "-q"]) == 0
    named = capsys.readouterr()
    assert _run.run(["evaluate", PAIR[0], YOLO[1], "-q"]) == 0
    assert named.out == capsys.readouterr().out
    assert named.err == ""
    assert _run.run(["inspect", str(bare)]) == 0
    assert "has no name: the id is used" in capsys.readouterr().out


def test_a_layout_of_text_files_is_refused_for_a_table_that_names_its_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run.run(["evaluate", PAIR[0], str(COCO.parent / "csv" / "better.csv"), "--pred-columns", "box-conf"]) == 2
    assert "expected MEANING=COLUMN, such as class=label, got 'box-conf'" in capsys.readouterr().err


def test_what_one_of_several_predictions_can_use_is_accepted() -> None:
    worse, table = str(COCO / "worse.json"), str(COCO.parent / "csv" / "better.csv")
    columns = ReadOptions(columns="class=class")
    assert compare(PAIR[0], worse, table, pred_options=columns).to_dict()["kind"] == "comparison"
    for given in ({"pred_options": columns}, {"gt_options": columns}):
        with pytest.raises(UsageError, match="as the format is coco"):
            compare(*PAIR, worse, **given)
    with pytest.raises(UsageError, match="as the input has no splits"):
        labels(*PAIR, gt_options=ReadOptions(split="train"))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (["inspect", PAIR[0], "--class-map", "a=b", "--match-images", "id"], "Remove --match-images, --class-map"),
        (["inspect", PAIR[0], "--sigmas", "0.1"], "Remove --sigmas"),
        (["inspect", VOC[0], "--names", "a"], "Remove --names."),
        (["inspect", VOC[0], "--gt-names", "a"], "Remove --gt-names."),
        (["inspect", VOC[1], "--pred-names", "a"], "Remove --pred-names."),
        (["inspect", YOLO[1], "--gt-names", YOLO[0], "--pred-names", "a"], "Remove --pred-names, or pass both sides"),
        (["convert", VOC[0], "out", "--to", "yolo", "--names", "a"], "Remove --names."),
        (["convert", VOC[1], "out", "--to", "yolo", "--pred-names", "a"], "Remove --pred-names."),
        (["nms", VOC[1], "-o", "out", "--names", "a"], "Remove --names."),
        (["inspect", PAIR[1], "--gt-columns", "class=a"], "Remove --gt-columns"),
        (["inspect", *PAIR, "--split", "train"], "Remove --split"),
        (["overlap", "0,0,2,2", "0,0,2,1", "--gt-index", "0"], "--gt-index"),
        (["labels", *PAIR, "--image-root", "a"], "--annotate label-studio=FILE"),
        (["evaluate", *PAIR, "--fail-under", "AP=0.1", "--allow-missing-baseline"], "--fail-drop"),
        (["evaluate", *PAIR, "--fail-under", "AP=0.1", "--metrics-file", "m.json"], "external.NAME"),
    ],
)
def test_each_command_refuses_what_it_cannot_use(
    line: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run.run(line) == 2
    assert named in capsys.readouterr().err


def test_a_folder_of_images_is_there_where_a_saved_run_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run.npz")
    assert _run.run(["evaluate", *PAIR, "-q", "-o", run]) == 0
    assert _run.run(["explain", run, "--images", str(tmp_path), "-q"]) == 0
    assert _run.run(["explain", run, "--images", "nowhere", "-q"]) == 3
    assert "nowhere: no such file or directory" in capsys.readouterr().err


def test_inputs_with_splits_and_pages_use_what_is_for_them(tmp_path: Path) -> None:
    assert _run.run(["inspect", YOLO[0], "--split", "train", "--names", YOLO[0]]) == 0
    for split in ("train", "valid"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "_annotations.coco.json").write_bytes((COCO / "gt.json").read_bytes())
    page = str(tmp_path / "page.html")
    line = ["evaluate", str(tmp_path), PAIR[1], "--split", "train", "--gallery", "1", "--title", "Cars", "-o", page]
    assert _run.run(line) == 0


def test_numbers_have_nothing_to_be_read_by(capsys: pytest.CaptureFixture[str]) -> None:
    for given in (["--gt-names", "a"], ["--skip-invalid"], ["--match-images", "stem"]):
        assert _run.run(["overlap", "0,0,2,2", "0,0,2,1", *given]) == 2
        assert given[0] in capsys.readouterr().err
    assert _run.run(["overlap", "0,0,2,2", "0,0,2,1"]) == 0
