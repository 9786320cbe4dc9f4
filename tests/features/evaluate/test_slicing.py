"""Slices of a result: their values and intervals, what is signed and recorded of them, and where they appear."""

import csv
import json
import re
from pathlib import Path

import pytest
from command_line import write_pair
from pictures import det, gt
from pictures import evaluate as evaluate_pictures
from resampled import as_drawn, draw_scene

from jaccard_eval import Bootstrap, Slice, UsageError, evaluate, verify
from jaccard_eval.data.document import document_digest
from jaccard_eval.data.result import EvaluationResult, RestDifference, SliceRow
from jaccard_eval.features.bootstrap.intervals import with_verdicts
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs import json_, tables
from jaccard_eval.report.outputs.text import render_markdown

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
    assert (hits.value, hits.interval, hits.refused) == (pytest.approx(1), None, "the value is 1")
    assert (misses.value, misses.interval, misses.refused) == (0, None, "the value is 0")
    assert both.interval is not None
    assert 0.3 < both.interval[0] < 51 / 101 < both.interval[1] < 0.7


def test_the_slice_of_all_images_has_the_interval_of_the_summary() -> None:
    result = alternating(60)
    assert result.slices[2].values["AP"].interval == result.metrics["AP"].interval


def test_slices_of_few_images_are_warned_of_and_one_image_has_no_interval(pair: tuple[Path, Path]) -> None:
    result = evaluate(*pair, slices=[DOGS, ALL], bootstrap=FEW)
    assert [row.values["AP"].interval is None for row in result.slices] == [True, True]
    few = next(one for one in result.findings if one.code == "bootstrap-few")
    reasons = "'dogs' (1 image; an interval needs 20); 'all' (2 images; an interval needs 20)"
    assert f"slices without intervals: {reasons}" in few.message


def test_slices_and_resamples_are_signed_and_recorded_as_they_were_asked_for(pair: tuple[Path, Path]) -> None:
    result = evaluate(*pair, slices=[DOGS], bootstrap=FEW)
    assert f"|slices=dogs[{result.slices[0].digest}]|bootstrap=halves,20,0.95,1|gt=sha-256-128:" in result.signature
    assert result.to_dict()["options"] == {
        "slices": [{"name": "dogs", "patterns": ["a.*"], "exact": False}],
        "bootstrap": {"n_resamples": 20, "confidence_level": 0.95, "rng": 1},
    }


def test_a_path_of_groups_is_recorded_as_text(tmp_path: Path) -> None:
    assert Bootstrap(group_by=tmp_path / "a.csv") == Bootstrap(group_by=str(tmp_path / "a.csv"))  # type: ignore[arg-type]


def test_a_result_with_slices_and_intervals_is_the_same_when_it_is_run_again(tmp_path: Path) -> None:
    path, pair = tmp_path / "result.json", (tmp_path / "gt.csv", tmp_path / "pred.csv")
    rows = [f"{'night' if i % 3 else 'day'}/{i:02d},cat,0,0,{10 + i % 2},10" for i in range(60)]
    pair[0].write_text("\n".join(("image,class,xmin,ymin,xmax,ymax", *rows)))
    scored = (f"{row[:-2]}{10 - i % 4},{1 - i / 100}" for i, row in enumerate(rows))
    pair[1].write_text("\n".join(("image,class,xmin,ymin,xmax,ymax,score", *scored)))
    result = evaluate(*pair, slices=[Slice(name="day", patterns=("day/*",)), ALL], bootstrap=FEW)
    assert result.slices[0].rest["AP50"].n_units == 20
    text = json_.render(result, ReportOptions())
    path.write_text(text)
    assert verify(path, *pair).equal
    low = result.slices[1].values["AP"].interval[0]  # type: ignore[index]
    head, tail = text.rsplit(f"{low!r}", 1)
    edited = json.loads(f"{head}{low - 0.25!r}{tail}")
    path.write_text(json.dumps(edited | {"digest": document_digest(edited)}))
    assert [one.name for one in verify(path, *pair).differences] == ["slices.all.intervals.AP.low"]


def test_csv_has_a_row_for_each_slice() -> None:
    result = alternating(60)
    rows = list(csv.DictReader(tables.render_csv(result, ReportOptions()).splitlines()))
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
    assert "slice" not in tables.render_csv(as_drawn(draw_scene(3)), ReportOptions()).splitlines()[0].split(",")


def test_markdown_shows_the_bounds_of_slices() -> None:
    text = render_markdown(alternating(60), ReportOptions())
    assert "| slice | images | gt | AP | AP50 | AP_low | AP_high | AP50_low | AP50_high |" in " ".join(text.split())
    assert "| misses | 30 | 30 | 0.0000 | 0.0000 | n/a | n/a | n/a | n/a |" in " ".join(text.split())


def half_found(n_night: int, n_day: int, *, found_at_night: int) -> EvaluationResult:
    """One cat in each image; by day two of three are found, at night as many of three as asked for."""
    images = [f"night/{i:03d}" for i in range(n_night)] + [f"day/{i:03d}" for i in range(n_day)]
    truth = [gt("cat 0 0 10 10", image) for image in images]
    found = [image for image in images if int(image[-3:]) % 3 < (found_at_night if image[0] == "n" else 2)]
    slices = [Slice(name=name, patterns=(f"{name}/*",)) for name in ("night", "day")]
    scored = [det("cat 0 0 10 10", 1 - i / 1000, image) for i, image in enumerate(found)]
    return evaluate_pictures(truth, scored, slices=slices, bootstrap=Bootstrap(n_resamples=200))


def test_a_slice_is_compared_with_the_rest_at_as_many_images_each() -> None:
    # Every hit has precision 1, so that AP is recall to the next of 101 values: 1 in 3 at night, 2 in 3 by day.
    night, day = (row.rest["AP"] for row in half_found(30, 120, found_at_night=1).slices)
    assert (night.n_units, day.n_units) == (30, 30)
    assert night.value == pytest.approx(34 / 101, abs=1e-12)  # the smaller part as it is
    assert night.rest == pytest.approx(2 / 3, abs=0.02)  # the mean of 60 draws of 30 of 120 images
    assert (night.verdict, day.verdict) == ("worse", "better")
    assert day.delta == pytest.approx(-night.delta, abs=1e-12)
    # Two images in three of n vary by sqrt(2 / 9 / n), and so does one in three.
    error = ((2 / 9) / 29 + (2 / 9) / 119) ** 0.5
    low, high = night.interval or (0.0, 0.0)
    assert (high - low) / 2 == pytest.approx(2.045 * error, rel=0.15)


def test_slices_of_one_population_do_not_differ() -> None:
    result = half_found(30, 120, found_at_night=2)
    assert [row.rest["AP"].verdict for row in result.slices] == ["no different", "no different"]
    assert "night is" not in render_markdown(result, ReportOptions())


def test_p_values_allow_for_how_many_slices_are_looked_at() -> None:
    # Holm: of 0.01, 0.04 and 0.03 the smallest is tripled, the next one doubled, the last one stays, and none falls.
    names = ("a", "b", "c")
    rows = [
        SliceRow(
            name=name,
            digest="",
            images=30,
            values={},
            rest={"AP": RestDifference(n_units=30, value=0.4, rest=0.5, p_value=p)},
        )
        for name, p in zip(names, (0.01, 0.04, 0.03), strict=True)
    ]
    tested = [row.rest["AP"] for row in with_verdicts(rows, FEW)]
    assert [one.p_value for one in tested] == pytest.approx([0.03, 0.06, 0.06], abs=1e-12)
    assert [one.verdict for one in tested] == ["worse", "no different", "no different"]


def test_every_output_says_how_a_slice_differs_from_the_rest() -> None:
    result = half_found(30, 120, found_at_night=1)
    text = " ".join(render_markdown(result, ReportOptions()).split())
    assert "night is worse: AP -0.3" in text
    assert re.search(r"p = 0\.0\d+ \(at 30 images each\)", text)
    night = list(csv.DictReader(tables.render_csv(result, ReportOptions()).splitlines()))[2]
    assert (night["AP_verdict"], night["AP_n_each"], night["intervals_for"]) == (
        "worse",
        "30",
        "sets of 30 such images",
    )
    assert result.to_dict()["slices"][0]["rest"]["AP"]["verdict"] == "worse"


def test_two_slices_of_one_name_are_refused(pair: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="slice 'dogs' is given twice"):
        evaluate(*pair, slices=[DOGS, DOGS])
