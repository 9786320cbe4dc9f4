"""Histories: values are those of `evaluate`, tests are those of `compare`, differences are arithmetic by hand."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import Bootstrap, BoxTable, DataError, EvaluationResult, compare, evaluate, history, load_result
from jaccard_eval.cli.run import run
from jaccard_eval.errors import ExitCode
from jaccard_eval.features.history.following import GIVEN, NATURAL, in_order
from jaccard_eval.features.history.report import build_charts

IMAGES = 30
LABELS = ["dog"] * 2 * IMAGES + ["cat"] * 2 * IMAGES
KEYS = [f"{at:02}.jpg" for at in range(2 * IMAGES) for _ in range(2)]
XYXY = [[at % 2 * 60, 0, at % 2 * 60 + 50, 50] for at in range(4 * IMAGES)]


def truth(*, moved: float = 0.0) -> BoxTable:
    return BoxTable.from_arrays(KEYS, LABELS, np.array(XYXY) + moved)


def made(dogs: float, cats: float = 0.5, *, gt: BoxTable | None = None, **options: object) -> EvaluationResult:
    """Evaluate predictions that find a share of the dogs and of the cats exactly, each with the score 0.9."""
    rows = [
        row for row in range(4 * IMAGES) if row % (2 * IMAGES) < (dogs if LABELS[row] == "dog" else cats) * 2 * IMAGES
    ]
    pred = [[part[row] for row in rows] for part in (KEYS, LABELS, XYXY)]
    return evaluate(truth() if gt is None else gt, BoxTable.from_arrays(*pred, score=[0.9] * len(rows)), **options)  # type: ignore[arg-type]


def saved(folder: Path, **runs: EvaluationResult) -> list[Path]:
    folder.mkdir(exist_ok=True)
    for name, result in runs.items():
        result.save(folder / f"{name}.npz")
        result.save(folder / f"{name}.json")
    return sorted(folder.glob("*.npz"))


def test_runs_have_their_values_and_the_difference_from_the_one_before() -> None:
    """COCO's AP of a class of which a share is found exactly: its recall points up to the share, of 101."""
    found = history(made(0.5), made(0.8), made(0.6), bootstrap=0)
    # (51 + 51) / 2, (81 + 51) / 2 and (61 + 51) / 2 of 101 points; a share of .5 reaches point 50 of 0 to 100.
    expected = [51 / 101, 66 / 101, 56 / 101]
    assert [run.metrics["AP"] for run in found.runs] == pytest.approx(expected, abs=1e-12)
    assert [run.delta for run in found.runs[1:]] == pytest.approx([15 / 101, -10 / 101], abs=1e-12)
    assert math.isnan(found.runs[0].delta)
    assert [run.part for run in found.runs] == [1, 1, 1]
    [dog, cat] = found.classes
    assert (dog.name, cat.name) == ("dog", "cat")  # what moved stands first
    assert dog.values == pytest.approx([51 / 101, 81 / 101, 61 / 101], abs=1e-12)
    assert dog.delta == pytest.approx(10 / 101, abs=1e-12)
    assert cat.delta == 0
    assert found.order == GIVEN


def test_differences_are_tested_as_compare_tests_them() -> None:
    one, two = made(0.3), made(0.9)
    found, compared = history(one, two, bootstrap=100), compare(None, one, two, bootstrap=Bootstrap(n_resamples=100))
    [delta, *_] = compared.others[0].summary
    assert found.runs[1].delta_interval == delta.interval
    assert found.runs[1].p_value == delta.p_value
    assert found.runs[1].verdict == str(compared.others[0].verdict) == "better"
    [dog] = [row for row in compared.others[0].deltas if (row.metric, row.class_name) == ("AP", "dog")]
    assert (found.classes[0].interval, found.classes[0].p_value) == (dog.interval, dog.p_value)


def test_a_run_has_the_interval_of_its_evaluation() -> None:
    asked = made(0.3, bootstrap=Bootstrap(n_resamples=100))
    assert history(made(0.3), made(0.9), bootstrap=100).runs[0].interval == asked.metrics["AP"].interval
    assert history(asked, bootstrap=0).runs[0].interval == asked.metrics["AP"].interval is not None


@pytest.mark.parametrize(
    ("other", "field"),
    [(lambda: made(0.9, gt=truth(moved=1)), "gt: the fingerprint"), (lambda: made(0.9, iou=0.5), "iou: the rule iou")],
)
def test_runs_of_other_ground_truth_or_rules_are_parts_that_are_not_compared(
    other: object, field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = saved(tmp_path / "runs", a=made(0.3), b=other(), c=made(0.5))  # type: ignore[operator]
    with pytest.warns(UserWarning, match=f"comparison-unequal.*{field}.*not compared"):
        found = history(*paths)
    assert [run.part for run in found.runs] == [1, 2, 1]
    assert math.isnan(found.runs[1].delta)
    # The third differs from the first, which it can be compared with.
    assert found.runs[2].delta == pytest.approx((51 - 31) / 2 / 101, abs=1e-12)
    assert [len(series.y) for series in build_charts(found)[0].series if series.name] == [2, 1]
    assert run(["report", *map(str, paths), "--strict"]) == ExitCode.DATA
    assert "comparison-unequal" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("paths", "expected", "order"),
    [
        (["epoch1", "epoch10", "epoch2"], ["epoch1", "epoch2", "epoch10"], NATURAL),
        (["r/2/9", "r/10/1"], ["r/2/9", "r/10/1"], GIVEN),
        (["before", "after"], ["before", "after"], GIVEN),
        (["a", "a1", "a01"], ["a", "a1", "a01"], GIVEN),
        (["a01", "a1"], ["a01", "a1"], NATURAL),
    ],
)
def test_what_stands_in_the_order_of_letters_is_put_in_that_of_numbers(
    paths: list[str], expected: list[str], order: str
) -> None:
    rows, called = in_order(paths)
    assert [paths[row] for row in rows] == expected
    assert called == order


def test_the_folder_has_a_page_for_each_run_and_replaces_what_it_wrote(tmp_path: Path) -> None:
    paths = [str(path) for path in saved(tmp_path / "runs", e1=made(0.3), e2=made(0.5), e10=made(0.9))]
    out = tmp_path / "history"
    assert run(["report", *paths, "-q", "-o", f"{out}/", "-o", str(tmp_path / "h.html")]) == 0
    index = (out / "index.html").read_text()
    assert [f'href="runs/000{row}.html"' in index for row in (1, 2, 3, 4)] == [True, True, True, False]
    # e1, e2, e10: the second page is that of e2, whose AP is (51 + 51) / 2 of 101.
    assert "0.5050" in (out / "runs" / "0002.html").read_text()
    assert "href=" not in (tmp_path / "h.html").read_text().partition("<tbody>")[2].partition("</tbody>")[0]
    assert run(["report", *paths[:2], "-q", "-o", str(out)]) == 0
    assert sorted(path.name for path in (out / "runs").iterdir()) == ["0001.html", "0002.html"]
    (out / "notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert run(["report", *paths, "-q", "-o", f"{out}/"]) == ExitCode.USAGE
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_documents_alone_have_no_tests_and_one_beside_its_run_is_that_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(tmp_path, a=made(0.3), b=made(0.9))
    documents, everything = sorted(tmp_path.glob("*.json")), sorted(tmp_path.iterdir())
    found = history(*documents)
    assert [finding.code for finding in found.findings] == ["bootstrap-skipped"]
    assert [run.verdict for run in found.runs] == ["", ""]
    assert found.runs[1].delta == pytest.approx(30 / 101, abs=1e-12)
    assert [run.path for run in history(*everything).runs] == [str(path.with_suffix(".npz")) for path in documents]
    assert run(["report", *map(str, documents), "--bootstrap", "9"]) == ExitCode.USAGE
    assert "Remove --bootstrap." in capsys.readouterr().err


def test_what_is_no_evaluation_is_refused_all_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [good, *_] = saved(tmp_path, a=made(0.3))
    compare(None, made(0.3), made(0.9), bootstrap=0).save(tmp_path / "other.json")
    (tmp_path / "broken.json").write_text("{")
    words = ["report", str(good), str(tmp_path / "other.json"), str(tmp_path / "broken.json"), "-o", f"{tmp_path}/out/"]
    assert run(words) == ExitCode.DATA
    said = capsys.readouterr().err
    assert "'comparison'; expected 'evaluation'" in said
    assert "broken.json" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "places",
    [
        {"inputs": {"gt": {"path": ["gt.json"]}}},
        {"inputs": ["gt.json"]},
        {"comparisons": 3},
        {"comparisons": [{"pred": 1}]},
    ],
)
def test_a_document_whose_places_are_damaged_is_refused_as_such(
    places: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [good, *_] = saved(tmp_path, a=made(0.3))
    damaged = tmp_path / "damaged.json"
    damaged.write_text(json.dumps(json.loads(good.with_suffix(".json").read_text()) | places))
    assert run(["report", str(good), str(damaged), "-o", str(tmp_path / "h.csv")]) == ExitCode.DATA
    assert "damaged.json" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--images", "."], ["--gallery", "3"], ["--top", "2"], ["--sort", "AP"]])
def test_options_of_a_single_result_are_refused(options: list[str], tmp_path: Path) -> None:
    paths = saved(tmp_path, a=made(0.3), b=made(0.9))
    assert run(["report", *map(str, paths), *options]) == ExitCode.USAGE
    assert run(["report", str(paths[0]), "--bootstrap", "9"]) == ExitCode.USAGE


def test_a_saved_history_is_read_back_and_the_csv_has_all_runs_and_classes(tmp_path: Path) -> None:
    paths = [str(path) for path in saved(tmp_path / "runs", a=made(0.3), b=made(0.9))]
    outputs = [tmp_path / "h.json", tmp_path / "h.csv"]
    assert run(["report", *paths, "-q", "-o", str(outputs[0]), "-o", str(outputs[1])]) == 0
    assert load_result(outputs[0]).to_dict() == json.loads(outputs[0].read_text())
    lines = outputs[1].read_text().splitlines()
    assert len(lines) == 1 + 2 + 2 * 2
    assert lines[0].startswith("run,class,part,images,gt,detections,AP,low,high,delta,")


def test_no_output_overwrites_what_the_runs_were_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = Path(__file__).parents[3] / "sample_data" / "coco"
    Path("gt.json").write_bytes((sample / "gt.json").read_bytes())
    for name in ("worse", "better"):
        evaluate("gt.json", sample / f"{name}.json").save(f"{name}.json")
    assert run(["report", "worse.json", "better.json", "-o", "gt.json"]) == ExitCode.USAGE
    assert "gt.json" in capsys.readouterr().err
    assert Path("gt.json").read_bytes() == (sample / "gt.json").read_bytes()


def test_a_tampered_run_is_refused(tmp_path: Path) -> None:
    saved(tmp_path, a=made(0.3), b=made(0.9))
    document = tmp_path / "b.json"
    document.write_text(document.read_text().replace('"AP50": 0.7', '"AP50": 0.8', 1))
    with pytest.raises(DataError, match="result-edited"):
        history(tmp_path / "a.json", document)
