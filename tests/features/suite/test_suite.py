"""Suites: cells are what `evaluate` says of each pair, standings are hand arithmetic on them."""

import itertools
import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import UsageError, evaluate, suite
from jaccard_eval.cli.run import run
from jaccard_eval.features.bootstrap import holm
from jaccard_eval.features.suite import SuiteCell, SuiteResult
from jaccard_eval.features.suite.compute import standings_of
from jaccard_eval.features.suite.report import models_section, sets_section
from jaccard_eval.findings import DataError
from jaccard_eval.report.model import Marked, Table

SAMPLE = Path(__file__).parents[3] / "sample_data"
GT, PRED = "gt/{set}.json", "pred/{model}/{set}.json"
PLAN = {"gt": GT, "pred": PRED}


def draw(path: Path, seed: int, kept: float, *, images: int = 6) -> None:
    """Write one ground truth, and predictions that find a share of its objects, `kept`."""
    rng = np.random.default_rng(seed)
    gt = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "dog"}]}
    dets = []
    for image in range(1, images + 1):
        gt["images"].append({"id": image, "file_name": f"{image}.jpg", "width": 500, "height": 500})
        for at in range(4):
            box = [at * 120 + 5, 10, 80, 90]
            gt["annotations"].append(
                {
                    "id": len(gt["annotations"]) + 1,
                    "image_id": image,
                    "category_id": 1,
                    "bbox": box,
                    "area": 7200,
                    "iscrowd": 0,
                }
            )
            if rng.random() < kept:
                dets.append({"image_id": image, "category_id": 1, "bbox": box, "score": round(rng.uniform(0.2, 1), 4)})
        dets.append(
            {"image_id": image, "category_id": 1, "bbox": [5, 200, 50, 50], "score": round(rng.uniform(0, 0.6), 4)}
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parents[2] / "gt").mkdir(exist_ok=True)
    (path.parents[2] / "gt" / path.name).write_text(json.dumps(gt))
    path.write_text(json.dumps(dets))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three models on six sets."""
    for row, (model, kept) in enumerate((("base", 0.5), ("big", 0.8), ("tiny", 0.4))):
        for number in range(6):
            draw(tmp_path / "pred" / model / f"s{number}.json", 100 * row + number, kept)
    return tmp_path


def test_a_cell_has_the_metrics_of_its_pair(folder: Path) -> None:
    result = suite(PLAN, folder=folder, workers=1)
    assert [cell.spelled for cell in result.cells][:2] == ["base on s0", "base on s1"]
    for cell in result.cells:
        alone = evaluate(folder / cell.gt, folder / cell.pred)
        assert cell.metrics == {
            name: pytest.approx(metric.value, nan_ok=True) for name, metric in alone.metrics.items()
        }
        assert (cell.objects, cell.signature) == (alone.gt.boxes, alone.signature)


def test_processes_change_nothing(folder: Path) -> None:
    assert (
        suite(PLAN, folder=folder, workers=2, cache=False).to_dict() == suite(PLAN, folder=folder, workers=1).to_dict()
    )


def cells_of(values: dict[str, list[float]], objects: list[int] | None = None, **at: str) -> list[SuiteCell]:
    return [
        SuiteCell(
            model=model,
            set_name=f"s{number}",
            at=at,
            gt="g",
            pred="p",
            state="done",
            objects=(objects or [1] * len(row))[number],
            metrics={"AP": value},
        )
        for model, row in values.items()
        for number, value in enumerate(row)
        if value is not None
    ]


def test_standings_by_hand() -> None:
    # On s1 both are equal: each wins, and they share ranks 1 and 2.
    values = {"a": [0.5, 0.4, 0.9], "b": [0.7, 0.4, 0.1]}
    [first, second] = standings_of(["a", "b"], ["s0", "s1", "s2"], cells_of(values, [1, 1, 8]), "AP", level=0.95)
    assert (first.model, first.mean, first.rank, first.wins) == ("a", pytest.approx(0.6), pytest.approx(4.5 / 3), 2)
    assert first.weighted == pytest.approx((0.5 + 0.4 + 8 * 0.9) / 10)
    assert (second.delta, second.wins, second.verdict) == (pytest.approx(-0.2), 2, "")
    assert first.interval is None  # of fewer than five sets


def test_of_a_metric_that_should_be_low_the_lowest_is_best() -> None:
    cells = [
        replace(cell, metrics={"LAMR": cell.metrics["AP"]}) for cell in cells_of({"a": [0.5, 0.3], "b": [0.2, 0.4]})
    ]
    rows = standings_of(["a", "b"], ["s0", "s1"], cells, "LAMR", level=0.95)
    assert [(row.model, row.mean, row.wins) for row in rows] == [("b", pytest.approx(0.3), 1), ("a", 0.4, 1)]
    result = SuiteResult(
        version="0",
        signature="",
        metric="LAMR",
        models=("a", "b"),
        sets=("s0", "s1"),
        cells=tuple(cells),
        standings=rows,
    )
    [table] = sets_section(result, None).blocks
    assert isinstance(table, Table)
    assert table.rows == (("s0", 0.5, Marked(0.2, "good")), ("s1", Marked(0.3, "good"), 0.4))
    models = models_section(result).blocks[0]
    assert isinstance(models, Table)
    assert models.rows[0][:2] == ("b", Marked(pytest.approx(0.3), "good"))
    assert Marked(pytest.approx(-0.1), "good") in models.rows[0]  # less than the first model


def test_a_mean_is_over_the_sets_that_all_models_have() -> None:
    values = {"a": [0.5, 0.1, None], "b": [0.7, None, 0.9], "c": [0.6, 0.2, 0.3]}
    rows = standings_of(["a", "b", "c"], ["s0", "s1", "s2"], cells_of(values), "AP", level=0.95)
    assert [(row.model, row.mean, row.sets) for row in rows] == [("b", 0.7, 2), ("c", 0.6, 3), ("a", 0.5, 2)]


def test_p_counts_the_orders_of_signs_by_hand() -> None:
    delta = [0.1, 0.2, 0.05, 0.3, 0.02, -0.01]
    base = [0.4] * 6
    rows = standings_of(
        ["a", "b"], [f"s{n}" for n in range(6)],
        cells_of({"a": base, "b": [x + y for x, y in zip(base, delta, strict=True)]}), "AP", level=0.95,
    )  # fmt: skip
    sums = [
        abs(sum(s * d for s, d in zip(signs, delta, strict=True))) for signs in itertools.product((1, -1), repeat=6)
    ]
    wanted = sum(found >= sum(delta) - 1e-12 for found in sums) / 64
    assert rows[0].model == "b"
    assert rows[0].p_value == pytest.approx(wanted)
    assert rows[0].verdict == "no different"


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, math.nan]) == [
        pytest.approx(0.03),
        pytest.approx(0.06),
        pytest.approx(0.06),
        pytest.approx(math.nan, nan_ok=True),
    ]


def test_intervals_of_means_hold_what_they_name() -> None:
    # Sets of a known mean: of 200 suites of 8 sets, about 190 intervals hold it.
    rng, held = np.random.default_rng(1), 0
    for _ in range(200):
        values = {"a": rng.normal(0.5, 0.1, 8).tolist()}
        [row] = standings_of(["a"], [f"s{n}" for n in range(8)], cells_of(values), "AP", level=0.95)
        assert row.interval is not None
        held += row.interval[0] <= 0.5 <= row.interval[1]
    assert 182 <= held <= 198


def test_seeds_are_means_with_their_deviation_and_corruptions_are_mpc() -> None:
    cells = [cell for seed, value in (("1", 0.4), ("2", 0.6)) for cell in cells_of({"a": [value]}, seed=seed)]
    [row] = standings_of(["a"], ["s0"], cells, "AP", level=0.95)
    assert (row.mean, row.sd) == (pytest.approx(0.5), pytest.approx(0.2 / math.sqrt(2)))
    # Michaelis et al.: severities within a corruption first, then corruptions.
    levels = {("fog", "1"): 0.4, ("fog", "2"): 0.2, ("snow", "1"): 0.1, ("clean", "0"): 0.5}
    cells = [
        cell
        for (name, level), value in levels.items()
        for cell in cells_of({"a": [value]}, corruption=name, severity=level)
    ]
    [row] = standings_of(["a"], ["s0"], cells, "AP", level=0.95)
    assert (row.mean, row.mpc, row.rpc) == (0.5, pytest.approx(0.2), pytest.approx(0.4))


def test_what_is_unchanged_is_not_computed_again(folder: Path) -> None:
    first = suite(PLAN, folder=folder, workers=1)
    again = suite(PLAN, folder=folder, workers=1)
    assert (first.reused, again.reused) == (0, 18)
    assert again.to_dict() == first.to_dict()
    draw(folder / "pred" / "big" / "s2.json", 7, 0.1)
    changed = suite(PLAN, folder=folder, workers=1)
    assert changed.reused == 15 or changed.reused == 17  # ground truth is drawn alike
    assert changed.to_dict() == suite(PLAN, folder=folder, workers=1, cache=False).to_dict()
    assert suite({**PLAN, "options": {"iou": 0.5}}, folder=folder, workers=1).reused == 0


def test_a_damaged_entry_is_computed_again(folder: Path) -> None:
    first = suite(PLAN, folder=folder, workers=1)
    for path in (folder / ".jaccard-eval-suite").iterdir():
        path.write_text(path.read_text().replace('"AP50": ', '"AP50": 0'))
    assert suite(PLAN, folder=folder, workers=1).to_dict() == first.to_dict()


def test_images_next_to_labels_are_part_of_what_is_unchanged(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE / "yolo", tmp_path / "yolo")
    plan = {"gt": "yolo/labels", "pred": "yolo/{model}", "models": ["better", "worse"]}
    assert suite(plan, folder=tmp_path, workers=1).reused == 0
    assert suite(plan, folder=tmp_path, workers=1).reused == 2
    data = tmp_path / "yolo" / "data.yaml"
    data.write_text(data.read_text() + "\n# a comment\n")
    assert suite(plan, folder=tmp_path, workers=1).reused == 0


def test_a_broken_pair_does_not_end_the_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pred" / "big" / "s1.json").write_text('[{"image_id": 1')
    (folder / "pred" / "tiny" / "s2.json").unlink()
    (folder / "suite.toml").write_text(f'gt = "{GT}"\npred = "{PRED}"\n')
    assert (
        run(["suite", "--processes", "1", str(folder), "-o", str(folder / "out.csv"), "-o", str(folder / "out.json")])
        == 3
    )
    said = capsys.readouterr()
    assert "big on s1" in said.out
    assert "not valid JSON" in said.err
    assert "no predictions: 'tiny on s2'" in said.err
    document = json.loads((folder / "out.json").read_text())
    states = {(cell["model"], cell["set"]): cell["state"] for cell in document["cells"]}
    assert (states["big", "s1"], states["tiny", "s2"], states["base", "s1"]) == ("failed", "missing", "done")
    assert (folder / "out.csv").read_text().count("\n") == 19


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("place", ["gt/s1.json", "pred/big/s1.json", "pred/big/s1.json/labels.txt"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(
    folder: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    pipe = folder / place
    (folder / "/".join(place.split("/")[: 2 + place.startswith("pred")])).unlink()
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    (folder / "suite.toml").write_text(f'gt = "{GT}"\npred = "{PRED}"\nsets = ["s0", "s1"]\n')
    assert run(["suite", "--processes", "1", str(folder)]) == 3
    said = capsys.readouterr()
    assert "is not a regular file" in said.err
    assert "base on s0" not in said.err


@pytest.mark.parametrize(
    ("scheduler", "code", "said"),
    [("cat", 2, "no such scheduler file"), ("x://", 4, "cannot reach the scheduler")],
)
def test_a_scheduler_that_is_none_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], scheduler: str, code: int, said: str
) -> None:
    pytest.importorskip("distributed")
    (folder / "suite.toml").write_text(f'gt = "{GT}"\npred = "{PRED}"\n')
    assert run(["suite", str(folder), "--scheduler", scheduler]) == code
    assert said in capsys.readouterr().err


def test_gates_on_means_ranks_and_cells(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "suite.toml").write_text(f'gt = "{GT}"\npred = "{PRED}"\ngates = ["rank[model=big]<=1.5"]\n')
    assert run(["suite", "--processes", "1", str(folder), "-q"]) == 0
    assert run(["suite", "--processes", "1", str(folder), "-q", "--fail", "cell[model=base,set=s3]>=0.99"]) == 1
    assert "FAILED  cell[model=base,set=s3]" in capsys.readouterr().out
    assert run(["suite", "--processes", "1", str(folder), "-q", "--fail", "mean[model=bgi]>=0.99"]) == 2
    assert "Did you mean 'mean[model=big]'" in capsys.readouterr().err


def test_the_folder_has_a_page_for_each_pair(folder: Path) -> None:
    (folder / "suite.toml").write_text(f'gt = "{GT}"\npred = "{PRED}"\n')
    out = folder / "report"
    assert run(["suite", "--processes", "1", str(folder), "-q", "-o", f"{out}/"]) == 0
    index = (out / "index.html").read_text()
    assert index.count('href="cells/') == 18
    assert "AP50" in (out / "cells" / "0001.html").read_text()
    # Fewer pages leave none of before.
    assert run(["suite", "--processes", "1", str(folder), "-q", "-o", f"{out}/"]) == 0
    (folder / "suite.toml").write_text(f'gt = "{GT}"\npred = "{PRED}"\nmodels = ["base"]\n')
    assert run(["suite", "--processes", "1", str(folder), "-q", "-o", str(out)]) == 0
    assert len(list((out / "cells").iterdir())) == 6
    (out / "mine.txt").write_text("x")
    assert run(["suite", "--processes", "1", str(folder), "-q", "-o", f"{out}/"]) == 2  # nothing of others is lost
    assert (out / "mine.txt").exists()


def test_a_page_of_somebody_else_is_not_replaced(folder: Path) -> None:
    (folder / "suite.toml").write_text(f'gt = "{GT}"\npred = "{PRED}"\n')
    out = folder / "site"
    out.mkdir()
    (out / "index.html").write_text("mine")
    assert run(["suite", "--processes", "1", str(folder), "-q", "-o", f"{out}/"]) == 2
    assert (out / "index.html").read_text() == "mine"


def test_options_of_one_set_and_of_all(folder: Path) -> None:
    boxes = json.loads((folder / "pred" / "base" / "s0.json").read_text())
    for box in boxes:
        x, y, w, h = box["bbox"]
        box["bbox"] = [x, y, x + w, y + h]
    for model in ("base", "big", "tiny"):
        (folder / "pred" / model / "s0.json").write_text(json.dumps(boxes))
    (folder / "suite.toml").write_text(
        f'gt = "{GT}"\npred = "{PRED}"\nmetric = "AP50"\n[options]\nmax-dets = "10"\n[set.s0]\npred-box = "xyxy"\n'
        '[groups]\nfirst = ["s[01]"]\n'
    )
    assert run(["suite", "--processes", "1", str(folder), "-q", "-o", str(folder / "out.json")]) == 0
    document = json.loads((folder / "out.json").read_text())
    cell = next(cell for cell in document["cells"] if (cell["model"], cell["set"]) == ("base", "s0"))
    assert "|max_dets=10|" in cell["signature"]
    assert cell["metrics"]["AP50"] > 0.2
    assert [(row["group"], row["sets"]) for row in document["groups"]] == [("first", 2)] * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gt = 3\nprd = 'x'\n", "unknown key 'prd'. Did you mean 'pred'?; gt: expected str, got 'int'"),
        (f"gt = '{GT}'\npred = 'pred/{{set}}.json'\n", "names no {model}"),
        (f"gt = '{GT}'\npred = '{PRED}'\n[options]\nbx = 'a'\n", "options.bx: unknown option"),
        (f"gt = '{GT}'\npred = '{PRED}'\n[options]\nprotocol = 'cooc'\n", "cooc"),
        (f"gt = '{GT}'\npred = '{PRED}'\nmodels = ['bge']\n", "there is no model 'bge'. Did you mean 'big'"),
        (f"gt = '{GT}'\npred = '{PRED}'\n[groups]\na = ['x*']\n", "no set matches 'a'"),
        (f"gt = '{GT}'\npred = '{PRED}'\nmetric = 'PQ'\n", "unknown metric 'PQ'"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (folder / "suite.toml").write_text(text)
    assert run(["suite", "--processes", "1", str(folder)]) == 2
    assert message in capsys.readouterr().err


def test_two_inputs_for_a_cell_and_patterns_that_find_nothing_stop(folder: Path) -> None:
    shutil.copy(folder / "pred/big/s0.json", folder / "pred/big/s0.csv")
    with pytest.raises(DataError, match="2 inputs for big, s0"):
        suite({"gt": GT, "pred": "pred/{model}/{set}.*"}, folder=folder)
    with pytest.raises(DataError, match="nothing matches the pattern 'no/"):
        suite({"gt": "no/{set}.json", "pred": PRED}, folder=folder)
    with pytest.raises(UsageError, match="gt is missing"):
        suite({"pred": PRED}, folder=folder)


def test_a_folder_without_a_plan_is_read_by_its_layout(folder: Path) -> None:
    assert run(["suite", "--processes", "1", str(folder), "-q"]) == 0


def test_draws_of_images_widen_the_interval_of_a_mean(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    # Of six images nothing is drawn.
    few = suite(PLAN, folder=folder, workers=1, cache=False, bootstrap=40)
    assert few.resampled == "sets"
    folder = tmp_path_factory.mktemp("more")
    for number in range(6):
        draw(folder / "pred" / "base" / f"s{number}.json", number, 0.5, images=24)
    of_sets = suite(PLAN, folder=folder, workers=1, cache=False)
    drawn = suite(PLAN, folder=folder, workers=1, cache=False, bootstrap=40)
    assert (of_sets.resampled, drawn.resampled) == ("sets", "sets and images")
    assert [row.mean for row in of_sets.standings] == [row.mean for row in drawn.standings]
    widths = [[row.interval[1] - row.interval[0] for row in result.standings] for result in (of_sets, drawn)]  # type: ignore[index]
    assert sum(widths[1]) > sum(widths[0])


def test_a_set_has_paths_of_its_own(folder: Path) -> None:
    shutil.copytree(SAMPLE / "coco", folder / "own")
    own = {"gt": "own/gt.json", "pred": "own/{model}.json"}
    for model, name in (("big", "better"), ("base", "worse")):
        (folder / "own" / f"{name}.json").rename(folder / "own" / f"{model}.json")
    result = suite({**PLAN, "models": ["base", "big"], "set": {"sample": own}}, folder=folder, workers=1)
    assert result.sets == ("s0", "s1", "s2", "s3", "s4", "s5", "sample")
    assert [round(result.values(model)["sample"], 4) for model in result.models] == [0.3463, 0.6616]


def test_hostile_names_are_inert(tmp_path: Path) -> None:
    for model in ("<b>a", "[b]:dog:"):
        draw(tmp_path / "pred" / model / "s[0].json", 1, 0.5)
    (tmp_path / "suite.toml").write_text(f'gt = "{GT}"\npred = "{PRED}"\n')
    assert run(["suite", "--processes", "1", str(tmp_path), "-q", "-o", f"{tmp_path}/out/"]) == 0
    assert "<b>a" not in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.parametrize("name", ["coco", "yolo", "csv", "voc", "kitti"])
def test_the_sample_in_any_format(name: str, tmp_path: Path) -> None:
    shutil.copytree(SAMPLE / name, tmp_path / name)
    gt = next(path.name for path in sorted((tmp_path / name).iterdir()) if path.stem in ("gt", "labels", "annotations"))
    kinds = {"coco": ".json", "csv": ".csv"}
    plan = {"gt": f"{name}/{gt}", "pred": f"{name}/{{model}}{kinds.get(name, '')}", "models": ["better"]}
    result = suite(plan, folder=tmp_path, workers=1)
    assert [(cell.state, cell.problem) for cell in result.cells] == [("done", "")]
    assert result.standings[0].mean > 0.5
