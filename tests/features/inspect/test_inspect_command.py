"""The command: what it prints where, and how it ends."""

import json
from pathlib import Path

import pytest
from command_line import run_here, write_json, write_pair


def test_one_path_is_read_as_what_it_is(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    for path, side in ((gt, "ground truth"), (pred, "predictions")):
        done = run_here("inspect", path)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"\n  {side}" in done.stdout


def test_two_paths_are_shown_together_without_any_metric(tmp_path: Path) -> None:
    done = run_here("inspect", *write_pair(tmp_path))
    assert done.returncode == 0
    assert "Agreement" in done.stdout
    assert "AP" not in done.stdout


def test_json_is_one_document(tmp_path: Path) -> None:
    done = run_here("inspect", *write_pair(tmp_path), "--json")
    assert json.loads(done.stdout)["kind"] == "inspection"


def test_reports_are_written_by_suffix(tmp_path: Path) -> None:
    names = ("r.txt", "r.md", "r.json", "r.csv")
    outputs = [word for name in names for word in ("-o", tmp_path / name)]
    assert run_here("inspect", *write_pair(tmp_path), *outputs).returncode == 0
    assert [(tmp_path / name).stat().st_size > 0 for name in names] == [True] * 4
    assert (tmp_path / "r.csv").read_text().splitlines()[0] == "class,gt_boxes,gt_images,pred_boxes,pred_images"


def test_what_was_read_is_shown_before_the_error(tmp_path: Path) -> None:
    gt, _ = write_pair(tmp_path)
    other = write_json(tmp_path / "o.json", [{"image_id": 99, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 0.5}])
    done = run_here("inspect", gt, other)
    assert done.returncode == 3
    assert "Images" in done.stdout and "Errors" in done.stdout
    assert done.stderr.startswith("error[image-unknown]: ")


@pytest.mark.parametrize("kind", ["segm", "boundary", "keypoints", "obb", "probiou"])
def test_files_without_the_shapes_that_are_asked_for_are_described_and_refused(kind: str) -> None:
    folder = Path(__file__).parents[3] / "sample_data" / "hf"
    done = run_here("inspect", folder / "gt.jsonl", folder / "better.json", "--iou-type", kind)
    assert done.returncode == 3, done.stderr
    assert done.stdout.count("shapes-missing") == 2 and "12 images, 39 boxes" in done.stdout


def test_strict_shows_all_and_ends_with_3_unless_the_warning_is_allowed(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, warned=True)
    strict = run_here("inspect", *pair, "--strict")
    assert strict.returncode == 3
    assert "Spread" in strict.stdout
    assert "error[box-empty]: " in strict.stderr
    assert run_here("inspect", *pair, "--strict", "--allow", "box-empty").returncode == 0


def test_swapped_sides_get_the_order_to_pass(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    done = run_here("inspect", pred, gt)
    assert done.returncode == 3
    assert f"the two sides are swapped. Pass --gt {gt} --pred {pred}." in done.stderr
    assert run_here("inspect", "--gt", gt, "--pred", pred).returncode == 0


def test_the_role_of_one_input_can_be_given(tmp_path: Path) -> None:
    gt, _ = write_pair(tmp_path)
    done = run_here("inspect", "--pred", gt)
    assert done.returncode == 3
    assert "error[score-missing]: " in done.stderr


@pytest.mark.parametrize("paths", [(), ("a", "b", "c"), ("--gt", "a", "b", "c"), ("--gt", "a", "--gt", "b")])
def test_a_wrong_number_of_inputs_is_a_usage_error(paths: tuple[str, ...]) -> None:
    assert run_here("inspect", *paths).returncode == 2


def test_an_empty_folder_is_an_error_of_data(tmp_path: Path) -> None:
    done = run_here("inspect", tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "error[" in done.stderr
