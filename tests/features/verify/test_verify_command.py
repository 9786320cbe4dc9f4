"""A saved result is run again from its own document, and what is not the same is named."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_here, run_process, write_json, write_pair

from jaccard_eval import evaluate, verify
from jaccard_eval.data.document import RUN_ENTRY, document_digest
from jaccard_eval.data.protocol import LATER_RULES, PROTOCOLS, RULES_OF, Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.features.verify import Difference, differences
from jaccard_eval.findings import DataError
from jaccard_eval.report.outputs.npz import digest_run
from jaccard_eval.runs import saved_protocol


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return write_pair(tmp_path)


def saved(pair: tuple[Path, Path], *options: str) -> Path:
    """The document of an evaluation of `pair`."""
    path = pair[0].parent / "result.json"
    done = run_here(*pair, *options, "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def edited(path: Path, **changes: object) -> Path:
    """Change a document and make its digest anew, so that what else is wrong with it shows."""
    document = json.loads(path.read_text()) | changes
    return write_json(path, document | {"digest": document_digest(document)})


def test_a_result_is_the_same_when_it_is_run_again(pair: tuple[Path, Path]) -> None:
    done = run_process("verify", saved(pair), "--gt", pair[0], "--pred", pair[1])
    assert (done.returncode, done.stderr) == (0, "")
    assert "the same: all " in done.stdout


def test_what_is_odd_about_a_file_of_names_is_no_difference(tmp_path: Path) -> None:
    # The document has the names that were read, and no more of the file.
    for side, score in (("gt", ""), ("pred", " 0.9")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "a.txt").write_text(f"0 .5 .5 .2 .2{score}\n1 .3 .3 .2 .1{score}\n")
    (tmp_path / "names.txt").write_text("dog\ncat\ndog\n")
    done = run_here("gt", "pred", "--names", "names.txt", "-o", "result.json", cwd=tmp_path)
    assert "warning[names-duplicate]: names.txt: names: duplicate name 'dog' for classes 0, 2" in done.stderr
    (tmp_path / "names.txt").unlink()
    done = run_here("verify", "result.json", "gt", "pred", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1][:9]) == (0, "the same:")


def test_the_order_of_records_makes_no_difference(pair: tuple[Path, Path]) -> None:
    path = saved(pair)
    write_json(pair[1], json.loads(pair[1].read_text())[::-1])
    assert run_here("verify", path, *pair).returncode == 0


def test_other_predictions_are_named_with_what_they_change(pair: tuple[Path, Path]) -> None:
    # The cat at its place instead of 4 pixels off: AP(cat) = 1 for 0, so AP = (51/101 + 1)/2 for 51/202.
    path = saved(pair)
    moved = pair[1].read_text().replace("24", "20")
    pair[1].write_text(moved)
    done = run_here("verify", path, *pair, "--json")
    assert done.returncode == 3
    assert done.stderr.startswith(f"error[result-differs]: {path}: ")
    assert "first: " in done.stderr
    assert "signature.pred: was 'sha-256-128:" in done.stderr
    assert "The boxes of the predictions have changed." in done.stderr
    document = json.loads(done.stdout)
    assert document["equal"] is False
    ap = next(one for one in document["differences"] if one["name"] == "metrics.AP")
    assert (ap["saved"], ap["again"]) == (pytest.approx(51 / 202), pytest.approx((51 / 101 + 1) / 2))


def test_an_edited_number_is_found_to_the_last_bit(pair: tuple[Path, Path]) -> None:
    path = saved(pair)
    metrics = json.loads(path.read_text())["metrics"]
    edited(path, metrics=metrics | {"AP": metrics["AP"] + 2**-53})
    done = run_here("verify", path, *pair)
    assert done.returncode == 3
    assert "error[result-differs]" in done.stderr
    assert "1 of " in done.stderr
    assert "Inputs and rules are the same" in done.stderr


def test_another_version_alone_is_a_warning_and_with_strict_an_error(pair: tuple[Path, Path]) -> None:
    path = saved(pair)
    fields = json.loads(path.read_text())["signature_fields"]
    edited(path, signature_fields=fields | {"v": "0.0.9"})
    done = run_here("verify", path, *pair)
    assert done.returncode == 0
    assert done.stderr.startswith(f"warning[result-version]: {path}: was made with version 0.0.9; this is version ")
    assert run_here("verify", path, *pair, "--strict").returncode == 3


@pytest.mark.parametrize(
    "options",
    [
        ["--protocol", "voc2012"],
        ["--protocol", "voc2007", "--iou", "0.5,0.75"],
        ["--iou", "0.5:0.95:0.05", "--max-dets", "none", "--areas", "all=0:inf,tiny=0:64"],
        ["--class-agnostic"],
        ["--classes", "dog", "--score", "0.5"],
        ["--exclude-classes", "dog", "--score", "best-f1"],
        ["--score-min", "0.85"],
        ["--score-min", "0"],
        ["--nms", "0.5", "--drop-duplicates"],
        ["--bootstrap", "20", "--confidence", "0.9", "--seed", "3"],
        ["--slice", "dogs=a.*", "--slice", "dogs=[a]*", "--slice", "all=*", "--bootstrap", "20"],
        ["--class-map", "1=cat,2=dog"],
        ["--class-map", "auto"],
        ["--match-images", "id", "--extra-images", "ignore"],
        ["--gt-format", "coco", "--pred-format", "coco", "--pred-box", "xyxy", "--gt-units", "px"],
        ["--gt-origin", "1", "--pred-origin", "1"],
        ["--pred-resized", "scale:0.99"],
    ],
    ids=" ".join,
)
def test_every_option_is_in_the_document_as_it_was_given(pair: tuple[Path, Path], options: list[str]) -> None:
    verification = verify(saved(pair, *options), *pair)
    assert (verification.differences, verification.equal) == ((), True)


def test_names_and_pictures_are_in_the_document(sample_data: Path, tmp_path: Path) -> None:
    gt, pred = sample_data / "yolo/labels", sample_data / "yolo/better"
    options = ["--images", str(sample_data / "yolo/images"), "--names", str(sample_data / "yolo/data.yaml")]
    done = run_here(gt, pred, *options, "-o", tmp_path / "result.json")
    assert done.returncode == 0, done.stderr
    recorded = json.loads((tmp_path / "result.json").read_text())["options"]
    assert recorded["gt_options"]["images"] == str(sample_data / "yolo/images")
    assert recorded["pred_options"] == recorded["gt_options"]
    assert verify(tmp_path / "result.json", gt, pred).equal


def test_options_that_were_not_given_are_not_in_the_document(pair: tuple[Path, Path]) -> None:
    assert json.loads(saved(pair).read_text())["options"] == {}
    assert evaluate(*pair, score_min=0.0).to_dict()["options"] == {"score_min": 0.0}


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"schema": 2}, "has schema 2; expected 1"),
        ({"options": {"nms": "much"}}, "cannot be run again: options.nms: expected a number, got the string 'much'"),
        (
            {"options": {"bootstrap": {"n_resamples": 1, "confidence_level": 0.9, "rng": 0}}},
            "cannot be run again: options.bootstrap: n_resamples must be a whole number >= 2",
        ),
        ({"intervals": {"AP": [0]}}, r"intervals\.AP: expected a list of two, got a list"),
        ({"protocol": {"name": "coco"}}, "protocol.iou_thresholds: is missing"),
        ({"metrics": None}, "metrics: expected an object, got null"),
        ({"inputs": {"gt": {}}}, "inputs.pred: is missing"),
        (
            {
                "options": {
                    "new": 1,
                    "gt_options": {"newer": 2},
                    "slices": [{"name": "a", "patterns": ["*"], "exact": False, "odd": 3}],
                }
            },
            r"'options.new', 'options.gt_options.newer', 'options.slices\[0\].odd' belongs to a different version",
        ),
    ],
)
def test_a_damaged_result_is_refused_with_its_place(
    pair: tuple[Path, Path], changes: dict[str, object], detail: str
) -> None:
    with pytest.raises(DataError, match=detail):
        verify(edited(saved(pair), **changes), *pair)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=lambda protocol: protocol.name)
def test_every_rule_is_read_back_as_it_was(protocol: Protocol) -> None:
    document = json.loads(json.dumps(protocol.to_document(), allow_nan=False))
    assert saved_protocol(document) == protocol.with_options(sources=())
    # Documents of boxes are without the rules that other shapes have, and those of DOTA alone.
    needed = document.keys() - {"iou_type", *LATER_RULES, *RULES_OF}
    assert all(f"protocol.{name} is missing" == _missing(document, name) for name in needed)


def _missing(document: dict[str, object], name: str) -> str:
    with pytest.raises(UsageError) as caught:
        saved_protocol({key: value for key, value in document.items() if key != name})
    return str(caught.value)


def test_rules_that_contradict_themselves_are_a_damaged_result(pair: tuple[Path, Path]) -> None:
    path = saved(pair)
    rules = json.loads(path.read_text())["protocol"] | {"iou_thresholds": [0.9, 0.5]}
    with pytest.raises(DataError, match=r"result.json: protocol: IoU thresholds must ascend"):
        verify(edited(path, protocol=rules), *pair)


@pytest.mark.parametrize("name", ["ignored_flags", "reusable_flags"])
def test_a_flag_that_no_box_has_is_a_damaged_result(pair: tuple[Path, Path], name: str) -> None:
    path = saved(pair)
    rules = json.loads(path.read_text())["protocol"] | {name: ["crowded"]}
    with pytest.raises(DataError, match="expected flags among crowd, difficult, group_of, ignore, got 'crowded'"):
        verify(edited(path, protocol=rules), *pair)


@pytest.mark.parametrize(
    ("text", "code"), [("[]", "result-invalid"), ("{", "json-syntax"), ("", "file-empty")], ids=repr
)
def test_what_is_no_result_ends_with_3(pair: tuple[Path, Path], text: str, code: str) -> None:
    path = pair[0].parent / "result.json"
    path.write_text(text)
    done = run_here("verify", path, *pair)
    assert done.returncode == 3
    assert done.stderr.startswith(f"error[{code}]: {path}")


def test_a_result_of_another_kind_is_a_wrong_call(pair: tuple[Path, Path], tmp_path: Path) -> None:
    done = run_here("verify", write_json(tmp_path / "r.json", {"kind": "inspection"}), *pair)
    assert done.returncode == 2
    assert "is a result of kind 'inspection'; only those of evaluation, pixels, panoptic" in done.stderr


def test_no_output_may_overwrite_the_result(pair: tuple[Path, Path]) -> None:
    path = saved(pair)
    done = run_here("verify", path, *pair, "-o", path)
    assert done.returncode == 2
    assert "which this run reads" in done.stderr


def test_an_edited_document_is_refused_wherever_it_is_read(pair: tuple[Path, Path]) -> None:
    path = saved(pair, "--fail-under", "AP50=0.1")
    document = json.loads(path.read_text())
    # Cells of gates and the like have no bounds of their own to break: only the digest shows the edit.
    document["gates"][0]["cells"][0]["value"] = 0.75
    write_json(path, document)
    for argv in (
        ["gate", path, "--fail-under", "AP50=0.7"],
        ["verify", path, *pair],
        ["explain", path],
    ):
        done = run_here(*argv)
        assert done.returncode == 3, argv
        assert f"error[result-edited]: {path}: " in done.stderr


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document.update(note="mine"),
        lambda document: document["metrics"].update(AP=document["metrics"]["AP"] - 2**-53),
        lambda document: document["correspondence"]["classes"].reverse(),
        lambda document: document["inputs"]["gt"].update(path="other.json"),
        lambda document: document.pop("digest"),
        lambda document: document.update(digest=None),
        lambda document: document.update(digest="sha256:0"),
    ],
)
def test_any_edit_is_found(pair: tuple[Path, Path], edit: Callable[[dict[str, Any]], object]) -> None:
    path = saved(pair)
    document = json.loads(path.read_text())
    edit(document)
    write_json(path, document)
    with pytest.raises(DataError, match=r"result-edited.*changed after it was written"):
        verify(path, *pair)


def test_another_layout_of_the_same_document_is_no_edit(pair: tuple[Path, Path]) -> None:
    path = saved(pair, "--score", "0.5", "--errors")
    document = json.loads(path.read_text())
    for text in (
        json.dumps(document, indent=7),
        json.dumps(dict(reversed(document.items())), separators=(",", ":")),
        json.dumps(document, ensure_ascii=False),
    ):
        path.write_text(text, encoding="utf-8")
        assert verify(path, *pair).equal


def test_the_digest_is_that_of_the_sorted_text_without_blanks() -> None:
    text = '{"a":[1,0.1,"\\u00e9"],"b":null}'
    expected = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert document_digest({"b": None, "digest": "x", "a": [1, 0.1, "é"]}) == expected


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("gates", 0, "cells", 0, "value"), 0.75),
        (("gates", 0, "cells", 0, "n"), 30),
        (("errors", "AP"), 0.5),
        (("correspondence", "image_strategy"), "stem"),
        (("undefined", "AP_small"), "made up"),
        (("signature_short",), "coco|gt=sha-256-128:0|pred=sha256:0|v=0|rules=0"),
        (("inputs", "gt", "units"), "norm"),
        (("inputs", "gt", "path"), "elsewhere/other.json"),
        (("inputs", "pred", "format"), "csv"),
        (("inputs", "pred", "unmatched_images"), 3),
        (("gates", 0, "slice_digest"), "0123456789abcdef"),
    ],
    ids=str,
)
def test_what_follows_from_the_inputs_is_compared(
    pair: tuple[Path, Path], place: tuple[str | int, ...], value: object
) -> None:
    path = saved(pair, "--fail-under", "AP50=0.1", "--errors")
    assert verify(path, *pair).equal
    document = json.loads(path.read_text())
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    assert inner.get(place[-1]) != value
    inner[place[-1]] = value
    names = [difference.name for difference in verify(edited(path, **document), *pair).differences]
    assert len(names) == 1, names
    assert str(place[-1]) in names[0]


def test_gates_on_slices_are_measured_again(pair: tuple[Path, Path]) -> None:
    config = pair[0].parent / "jaccard-eval.toml"
    rule = '[[gates.rules]]\nmetric = "AP50"\nslice = "first"\nmin = 0.1\n'
    config.write_text(f'[gates]\nslices.first = ["a.*"]\n{rule}')
    path = saved(pair, "--config", str(config), "--slice", "first=a.*")
    document = json.loads(path.read_text())
    (verdict,) = document["gates"]
    assert verdict["slice"] == "first"
    assert verify(path, *pair).equal
    verdict["cells"][0]["value"] = 0.125
    (difference,) = verify(edited(path, **document), *pair).differences
    assert (difference.saved, difference.again) == (0.125, verdict["value"])


def test_of_rows_of_numbers_each_is_a_value_and_those_that_differ_are_named() -> None:
    saved = {"row": [1, 2, 3], "same": [4, None, 6], "longer": [7, 8, 9], "other": [1, 2, 3], "AP": 0.5}
    again = {"row": [1, 5, 3], "same": [4, None, 6], "longer": [7, 8, 9, 10], "other": None, "AP": 0.5}
    # 3 + 3 + 4, a place and those of the three numbers that are gone, and 1.
    assert differences(saved, again) == (
        15,
        (
            Difference("row.1", 2, 5),
            Difference("longer.3", None, 10),
            Difference("other", None, None),
            *(Difference(f"other.{row}", row + 1, None) for row in range(3)),
        ),
    )


def test_a_saved_run_is_compared_with_its_match_table(pair: tuple[Path, Path]) -> None:
    path = pair[0].parent / "run.npz"
    assert run_here(*pair, "-o", path).returncode == 0
    same = verify(path, *pair)
    assert same.equal
    # The rows of both files in another order: the same boxes, pairs and matches.
    for side in pair:
        content = json.loads(side.read_text())
        boxes = content["annotations"] if isinstance(content, dict) else content
        boxes.reverse()
        write_json(side, content)
    assert verify(path, *pair).equal
    with np.load(path) as content:
        arrays = dict(content)
    arrays["pair_overlap"] = arrays["pair_overlap"] * 0.99
    run = json.loads(arrays[RUN_ENTRY].tobytes())
    run["digest"] = digest_run(run | {"digest": None}, arrays)
    arrays[RUN_ENTRY] = np.frombuffer(json.dumps(run).encode(), dtype=np.uint8)
    np.savez(path, **arrays)
    names = {difference.name for difference in verify(path, *pair).differences}
    assert names == {"run.pairs", "run.matches"}
    assert run_here("verify", path, *pair).returncode == 3
