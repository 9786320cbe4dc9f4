"""Intervals of a result: where they appear, which images are drawn together, what is said of doubtful ones."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import write_pair
from pictures import det, gt
from pictures import evaluate as evaluate_pictures
from resampled import as_drawn, draw_scene

from jaccard_eval import CompareOptions, compare, evaluate, to_frame, verify
from jaccard_eval.cli import run
from jaccard_eval.data.result import Resamples, Shown
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap import estimates
from jaccard_eval.features.bootstrap.intervals import (
    image_groups,
    interval_remarks,
    resample_alike,
    with_intervals,
)
from jaccard_eval.findings import DataError
from jaccard_eval.options import Bootstrap
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs import tables
from jaccard_eval.report.outputs.text import render_markdown

N = 24
FEW = Bootstrap(n_resamples=20, rng=1)


def test_the_summary_and_every_class_have_intervals() -> None:
    result = with_intervals(as_drawn(draw_scene(3, N), N), FEW)
    low, high = result.metrics["AP50"].interval or (1.0, 0.0)
    assert low <= result["AP50"] <= high
    document = result.to_dict()
    assert document["intervals"]["AP50"] == [low, high]
    assert all(set(row["intervals"]) == set(result.per_class[0].values) for row in document["per_class"])
    about = document["bootstrap"].pop("metrics")
    assert about["AP"]["halves"] == pytest.approx(result.bootstrap.values[:, 0].mean(), abs=1e-12)  # type: ignore[union-attr]
    assert document["bootstrap"] == {
        "method": "halves",
        "target": "expected value on sets of this size",
        "n_resamples": 20,
        "confidence_level": 0.95,
        "rng": 1,
        "unit": "image",
        "n_units": N,
    }


def test_evaluate_resamples_as_often_as_it_is_told(tmp_path: Path) -> None:
    pair = write_pair(tmp_path)
    plain, often = evaluate(*pair), evaluate(*pair, bootstrap=15)
    assert often.to_dict()["bootstrap"]["n_resamples"] == 15
    assert often.signature == plain.signature.replace("|gt=", "|bootstrap=halves,15,0.95,0|gt=")
    assert often.to_dict() == evaluate(*pair, bootstrap=Bootstrap(n_resamples=15)).to_dict()
    with pytest.raises(UsageError, match="n_resamples must be a whole number >= 2, got 1"):
        evaluate(*pair, bootstrap=1)


def test_intervals_make_no_other_evaluation_of_a_run(tmp_path: Path) -> None:
    pair = write_pair(tmp_path)
    runs = [tmp_path / "plain.npz", tmp_path / "noise.npz"]
    plain, noise, result = *map(str, runs), str(tmp_path / "result.json")
    argv = ["evaluate", *map(str, pair)]
    assert run.run([*argv, "-o", plain]) == 0
    assert run.run([*argv, "--bootstrap", "9", "--score", "0.5", "--slice", "all=*", "-o", noise, "-o", result]) == 0
    compared = compare(None, *runs[::-1], options=CompareOptions(bootstrap=None))
    assert "bootstrap=" not in compared.signature
    assert run.run([*argv, "--baseline", result, "--fail-drop", "AP=0"]) == 0
    assert run.run(["gate", result, "--fail-under", "AP50[class=dog]=0.5"]) == 0
    assert run.run(["explain", result, "AP50"]) == 0


def test_groups_are_signed_and_found_again(tmp_path: Path) -> None:
    pair, groups, path = write_pair(tmp_path), tmp_path / "groups.csv", tmp_path / "result.json"
    groups.write_text("a.jpg,day\nb.jpg,night\n", encoding="utf-8")
    argv = ["evaluate", *map(str, pair), "--bootstrap", "15", "--group-by", str(groups)]
    assert run.run([*argv, "-o", str(path)]) == 0
    assert verify(path, *pair).equal
    groups.write_text("a.jpg,day\nb.jpg,dusk\n", encoding="utf-8")
    names = {difference.name for difference in verify(path, *pair).differences}
    assert names == {"signature.bootstrap", "bootstrap.grouping", "signature", "signature_short"}
    assert run.run([*argv, "-o", str(groups)]) == 2


def test_a_file_of_groups_may_name_other_images_which_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair, groups = write_pair(tmp_path), tmp_path / "groups.csv"
    groups.write_text("a.jpg,day\nb.jpg,night\nz.jpg,night\ny.jpg,day\n", encoding="utf-8")
    assert run.run(["evaluate", *map(str, pair), "--bootstrap", "9", "--group-by", str(groups)]) == 0
    told = f"note[group-unused]: {groups}: ignored 2 images not in the evaluation, such as 'y.jpg'"
    assert told in capsys.readouterr().err


def test_a_cell_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text(f"1.jpg,day\n2.jpg,{'x' * 200_000}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"group-row.*groups\.csv:2: field larger than field limit"):
        image_groups(["1.jpg"], str(path))


def test_tables_have_the_bounds_of_each_class() -> None:
    result = with_intervals(as_drawn(draw_scene(3, N), N), FEW)
    frame = to_frame(result)
    for row, low, high in zip(result.per_class, frame["AP50_low"], frame["AP50_high"], strict=True):
        assert (low, high) == row.values["AP50"].interval
    assert set(frame["intervals_for"]) == {"sets of 24 such images"}
    assert "AP_low" not in to_frame(as_drawn(draw_scene(3, N), N)).columns


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--bootstrap", "1"], "--bootstrap must be a whole number >= 2, got 1"),
        (["--bootstrap", "9", "--confidence", "95"], "--confidence must be above 0 and below 1, got 95.0"),
    ],
)
def test_settings_out_of_range_are_named_by_their_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert run.run(["evaluate", *map(str, write_pair(tmp_path)), *argv]) == 2
    assert message in capsys.readouterr().err


def test_a_result_without_bootstrap_says_nothing_of_intervals() -> None:
    document = as_drawn(draw_scene(3, N), N).to_dict()
    assert not {"bootstrap", "intervals"} & set(document)
    assert not any("intervals" in row for row in document["per_class"])


def test_the_metrics_stay_what_they_are() -> None:
    plain = as_drawn(draw_scene(3, N), N)
    assert with_intervals(plain, FEW).to_dict()["metrics"] == plain.to_dict()["metrics"]


def test_few_images_are_warned_of_and_rare_classes_noted() -> None:
    plain = as_drawn(draw_scene(3))
    result = with_intervals(plain, FEW)
    (few,) = result.findings[len(plain.findings) :]
    assert (few.code, "no intervals: 6 images; an interval needs 20" in few.message) == ("bootstrap-few", True)
    assert result.to_dict()["refused"]["AP"] == "6 images; an interval needs 20"
    # One fox on four of 24 images.
    foxes = [gt("fox 0 0 10 10", f"i{i}") for i in range(4)]
    cats = [gt("cat 0 0 10 10", f"i{i}") for i in range(24)]
    found = [det("cat 0 0 10 10", 0.9 - i / 100, f"i{i}") for i in range(0, 24, 2)]
    rare = with_intervals(evaluate_pictures([*cats, *foxes], [*found, det("fox 0 0 10 9", 0.5, "i1")]), FEW)
    notes = {one.code: one.message for one in rare.findings}
    assert "such as AP[class=fox]: objects in 4 images; an interval needs 5" in notes["bootstrap-undefined"]


def test_a_value_that_depends_on_the_size_of_the_set_is_noted_with_its_range() -> None:
    values = [0.24, 0.26] * 10
    drawn = Resamples(
        settings=FEW,
        method="halves",
        unit="image",
        n_units=500,
        refs=("AP",),
        estimate=np.array([0.2]),
        values=np.array(values)[:, None],
        shown=(Shown(500, 0, 80),),
    )
    (note,) = interval_remarks(replace(drawn, estimates=estimates(drawn)), "pred.json", ())
    assert (note.code, str(note.severity)) == ("bootstrap-biased", "note")
    assert "AP depends on the size of the set: halves of it have 0.2500, it has 0.2000" in note.message
    sparse = replace(drawn, shown=(Shown(500, 79, 80),))
    (note,) = interval_remarks(replace(sparse, estimates=estimates(sparse)), "pred.json", ())
    assert "79 of 80 classes are shown by fewer than 10 images: how far it lies above" in note.message


def test_runs_of_different_images_are_not_resampled_alike() -> None:
    runs = [as_drawn(draw_scene(3), n_images).measured for n_images in (6, 7)]
    with pytest.raises(UsageError, match=r"cannot pair resamples: 1 image not in all runs, such as 'i6'"):
        resample_alike(runs, FEW)


def test_what_is_signed_of_groups_is_which_image_is_in_which(tmp_path: Path) -> None:
    metrics, path = as_drawn(draw_scene(3)).measured, tmp_path / "groups.csv"
    rows = [f"i{i},{'day' if i < 3 else 'night'}\n" for i in range(6)]

    def signed(lines: list[str]) -> str:
        path.write_text("".join(lines), encoding="utf-8")
        return resample_alike([metrics], replace(FEW, group_by=str(path)))[0].choice

    assert signed(rows) == signed(rows[::-1])
    assert signed(rows) != signed([rows[0].replace("day", "night"), *rows[1:]])


def test_images_of_one_folder_are_one_group() -> None:
    assert image_groups(["a/1.jpg", "a/2.jpg", "b/1.jpg", "c.jpg"], "folder") == ["a", "a", "b", "."]


def test_a_file_names_the_group_of_each_image(tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text('1.jpg,day\n\n"2,b.jpg", night\n', encoding="utf-8")
    assert image_groups(["2,b.jpg", "1.jpg"], str(path)) == ["night", "day"]
    path.write_text("1.jpg,day\n \t\nb\u2028.jpg,night\n", encoding="utf-8")  # a blank line; no line ends in a name
    assert image_groups(["b\u2028.jpg", "1.jpg"], str(path)) == ["night", "day"]


def test_every_image_needs_a_group(tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text("1.jpg,day\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"group-missing.*2\.jpg"):
        image_groups(["1.jpg", "2.jpg", "3.jpg"], str(path))


@pytest.mark.parametrize("row", ["2.jpg", "2.jpg,a,b", "2.jpg,", "1.jpg,night"])
def test_a_row_is_an_image_and_its_only_group(tmp_path: Path, row: str) -> None:
    path = tmp_path / "groups.csv"
    path.write_text(f"1.jpg,day\n{row}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"group-row.*groups\.csv:2: expected image,group"):
        image_groups(["1.jpg"], str(path))


def test_markdown_shows_the_bounds_of_each_metric() -> None:
    text = render_markdown(with_intervals(as_drawn(draw_scene(3, N), N), FEW), ReportOptions(per_class=True))
    assert "Intervals (95 %)" in text
    assert "20 halves of 24 images, seed 1" in text
    assert "interval of the expected value on sets of 24 such images" in text
    assert re.search(r"AP 0\.\d{4}, 95 % interval 0\.\d{4} to 0\.\d{4} for sets of 24 such images", text)


def test_csv_has_two_columns_for_the_bounds_of_each_metric() -> None:
    result = with_intervals(as_drawn(draw_scene(3, N), N), FEW)
    header, pooled, *_ = csv.reader(tables.render_csv(result, ReportOptions()).splitlines())
    low, high = (float(pooled[header.index(name)]) for name in ("AP50_low", "AP50_high"))
    assert (low, high) == result.metrics["AP50"].interval


def test_the_command_gives_intervals_with_the_settings_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [*map(str, write_pair(tmp_path)), "--bootstrap", "15", "--confidence", "0.8", "--seed", "4", "--json"]
    assert run.run(argv) == 0
    first = capsys.readouterr().out
    assert json.loads(first)["bootstrap"]["confidence_level"] == 0.8
    assert run.run(argv) == 0
    assert capsys.readouterr().out == first


def test_settings_without_bootstrap_are_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run([*map(str, write_pair(tmp_path)), "--seed", "4"]) == 2
    assert "--seed needs --bootstrap N" in capsys.readouterr().err
