"""Slices of a result: their values and intervals, what is signed and recorded of them, and where they appear."""

import csv
import json
from pathlib import Path

import pytest
from command_line import write_pair
from pictures import det, gt
from pictures import evaluate as evaluate_pictures
from resampled import as_drawn, draw_scene

from jaccard_eval import Bootstrap, Slice, UsageError, evaluate, verify
from jaccard_eval.data.document import document_digest
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs import csv_, json_, markdown

FEW = Bootstrap(n_resamples=20, rng=1)
DOGS, ALL = Slice(name="dogs", patterns=("a.*",)), Slice(name="all", patterns=("*",))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return write_pair(tmp_path)


def alternating(n_images: int) -> EvaluationResult:
    """One box in each image, found in every second one; a slice of each kind, and one of all."""
    truth = [gt("cat 0 0 10 10", f"{i % 2}/{i:02d}") for i in range(n_images)]
    found = [det("cat 0 0 10 10", 0.9, f"1/{i:02d}") for i in range(1, n_images, 2)]
    slices = [Slice(name=name, patterns=(glob,)) for name, glob in (("hits", "1/*"), ("misses", "0/*"), ("all", "*"))]
    return evaluate_pictures(truth, found, slices=slices, bootstrap=FEW)


def test_a_slice_is_measured_as_if_its_images_were_all(pair: tuple[Path, Path]) -> None:
    # Image a has two dogs, one found: 51/101; image b a cat that is missed.
    dogs, both = evaluate(*pair, slices=[DOGS, ALL]).slices
    assert (dogs.images, dogs.values["AP"].value, dogs.values["AP"].n) == (1, pytest.approx(51 / 101), 2)
    assert (both.images, both.values["AP"].value) == (2, pytest.approx(51 / 202))
    assert dogs.values["AP"].interval is None


def test_each_slice_draws_from_its_own_images() -> None:
    # All that is drawn of the hits is found, and nothing of the misses; of both kinds it varies around one half.
    hits, misses, both = (row.values["AP"] for row in alternating(60).slices)
    assert (hits.value, hits.interval) == (pytest.approx(1), pytest.approx((1, 1)))
    assert (misses.value, misses.interval) == (0, (0, 0))
    assert both.interval is not None
    assert 0.3 < both.interval[0] < 51 / 101 < both.interval[1] < 0.7


def test_the_slice_of_all_images_has_the_interval_of_the_summary() -> None:
    result = alternating(60)
    assert result.slices[2].values["AP"].interval == result.metrics["AP"].interval


def test_slices_of_few_images_are_warned_of_and_one_image_has_no_interval(pair: tuple[Path, Path]) -> None:
    result = evaluate(*pair, slices=[DOGS, ALL], bootstrap=FEW)
    assert [row.values["AP"].interval is None for row in result.slices] == [True, False]
    few = [one for one in result.findings if one.code == "bootstrap-few"]
    assert "with fewer than 30 images or groups are too narrow: 'dogs' (1), 'all' (2)" in few[0].message


def test_slices_and_resamples_are_signed_and_recorded_as_they_were_asked_for(pair: tuple[Path, Path]) -> None:
    result = evaluate(*pair, slices=[DOGS], bootstrap=FEW)
    assert f"|slices=dogs[{result.slices[0].digest}]|bootstrap=20,0.95,1|gt=sha-256-128:" in result.signature
    assert result.to_dict()["options"] == {
        "slices": [{"name": "dogs", "patterns": ["a.*"], "exact": False}],
        "bootstrap": {"n_resamples": 20, "confidence_level": 0.95, "rng": 1},
    }


def test_a_path_of_groups_is_recorded_as_text(tmp_path: Path) -> None:
    assert Bootstrap(group_by=tmp_path / "a.csv") == Bootstrap(group_by=str(tmp_path / "a.csv"))  # type: ignore[arg-type]


def test_a_result_with_slices_and_intervals_is_the_same_when_it_is_run_again(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    path = tmp_path / "result.json"
    result = evaluate(*pair, slices=[DOGS, ALL], bootstrap=FEW)
    text = json_.render(result, ReportOptions())
    path.write_text(text)
    assert verify(path, *pair).equal
    low = result.slices[1].values["AP50"].interval[0]  # type: ignore[index]
    head, tail = text.rsplit(f"{low!r}", 1)
    edited = json.loads(f"{head}{low + 0.25!r}{tail}")
    path.write_text(json.dumps(edited | {"digest": document_digest(edited)}))
    assert [one.name for one in verify(path, *pair).differences] == ["slices.all.intervals.AP50.low"]


def test_csv_has_a_row_for_each_slice() -> None:
    result = alternating(60)
    rows = list(csv.DictReader(csv_.render(result, ReportOptions()).splitlines()))
    assert [(row["class"], row["slice"], row["gt"]) for row in rows] == [
        ("all", "", "60"),
        ("cat", "", "60"),
        ("all", "hits", "30"),
        ("all", "misses", "30"),
        ("all", "all", "60"),
    ]
    both = rows[-1]
    assert (float(both["AP50_low"]), float(both["AP50_high"])) == result.slices[2].values["AP50"].interval
    assert (both["pred"], both["AP75"]) == ("", "")


def test_csv_without_slices_has_no_column_for_them() -> None:
    assert "slice" not in csv_.render(as_drawn(draw_scene(3)), ReportOptions()).splitlines()[0].split(",")


def test_markdown_shows_the_bounds_of_slices() -> None:
    text = markdown.render(alternating(60), ReportOptions())
    assert "| slice | images | gt | AP | AP50 | AP_low | AP_high | AP50_low | AP50_high |" in " ".join(text.split())
    assert "| misses | 30 | 30 | 0.0000 | 0.0000 | 0.0000 | 0.0000 | 0.0000 | 0.0000 |" in " ".join(text.split())


def test_two_slices_of_one_name_are_refused(pair: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="slice 'dogs' is given twice"):
        evaluate(*pair, slices=[DOGS, DOGS])
