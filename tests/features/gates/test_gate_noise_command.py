"""Gates that know the noise on the command line: exit codes, the saved runs that they take, and what is said."""

import csv
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import box, run_process, write_json
from PIL import Image

from jaccard_eval.cli import run as _run
from jaccard_eval.cli import streams

FEW = ("--bootstrap", "100")
SIGNIFICANT = ("--fail-significant-drop", "AP50=0.02", "--baseline", "main.json", *FEW)
INFERIOR = ("--fail-inferior", "AP50=0.02", "--baseline", "main.json", *FEW)
N_IMAGES = 40


class Bench:
    """One folder with a dog on each of 40 images, three models that find some of them, and a saved baseline."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys
        self.out = self.err = ""
        annotations = [box(i, 1, [0, 0, 10, 10]) for i in range(N_IMAGES)]
        truth = {
            "images": [{"id": i, "file_name": f"v{i % 4}/{i}.jpg"} for i in range(N_IMAGES)],
            "annotations": [{"id": i + 1, "area": 100, "iscrowd": 0, **one} for i, one in enumerate(annotations)],
            "categories": [{"id": 1, "name": "dog"}],
        }
        write_json(folder / "gt.json", truth)
        self.find("pred.json", range(36))
        self.find("equal.json", range(4, 40))  # misses as many, others
        self.find("worse.json", range(18))
        assert self.evaluate("pred.json", "-o", "main.json", "-o", "main.npz") == 0

    def find(self, name: str, images: Collection[int]) -> None:
        # IoU 0.99: not the ground truth itself, which would be warned of.
        boxes = [box(i, 1, [0, 0, 10, 9.9], score=0.9 - i / 1000) for i in images]
        write_json(self.folder / name, boxes)

    def run(self, *argv: str) -> int:
        code = _run.run(argv)
        self.out, self.err = self.capsys.readouterr()
        return code

    def evaluate(self, pred: str, *argv: str) -> int:
        return self.run("evaluate", "gt.json", pred, *argv)

    def configure(self, text: str) -> None:
        (self.folder / "jaccard-eval.toml").write_text(text, encoding="utf-8")

    def document(self, name: str = "result.json") -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / name).read_text())
        return content

    def save(self, pred: str) -> None:
        assert self.evaluate(pred, "-o", "result.json", "-o", "result.npz") == 0


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path, capsys)


def test_a_real_drop_fails_by_either_rule(bench: Bench) -> None:
    # 18 of 40 dogs instead of 36: chance does not do that. None of 100 resamples turns it around: 2 / 101 is 0.020.
    assert [bench.evaluate("worse.json", *rule) for rule in (SIGNIFICANT, INFERIOR)] == [1, 1]
    assert "p = 0.02" in bench.out
    assert "FAILED  AP50 may have dropped by more than 0.02: -0." in bench.out.splitlines()[-1]


def test_an_equally_good_model_shows_no_drop_and_is_not_shown_to_be_as_good(bench: Bench) -> None:
    assert [bench.evaluate("equal.json", *rule) for rule in (SIGNIFICANT, INFERIOR)] == [0, 1]
    assert "warning[gate-below-noise]: gates: --fail-inferior AP50=0.02" in bench.err
    assert "the drop is within the limit, but its interval exceeds it" in " ".join(bench.out.split())


def test_the_model_itself_passes_everything(bench: Bench) -> None:
    assert [bench.evaluate("pred.json", *rule) for rule in (SIGNIFICANT, INFERIOR)] == [0, 0]
    assert "warning" not in bench.err


def test_every_output_tells_the_interval(bench: Bench) -> None:
    names = ("result.json", "report.md", "junit.xml", "report.txt")
    assert bench.evaluate("worse.json", *SIGNIFICANT, *(word for name in names for word in ("-o", name))) == 1
    (gate,) = bench.document()["gates"]
    assert (gate["significance"], gate["spread"]["of"]) == ("significant-drop", "delta")
    assert gate["spread"]["low"] < gate["delta"] < gate["spread"]["high"] < 0
    interval = f"95 % interval {gate['spread']['low']:.4f} to {gate['spread']['high']:.4f}"
    for name in names[1:]:
        assert interval in " ".join((bench.folder / name).read_text().split()), name
    assert interval in " ".join(bench.out.split())
    assert bench.evaluate("worse.json", *SIGNIFICANT, "--json") == 1
    assert json.loads(bench.out)["gates"] == [gate]


def test_the_table_of_gates_keeps_within_80_columns(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "result_width", lambda: 80)
    bench.evaluate("worse.json", *INFERIOR)
    section = bench.out.partition("\nGates\n")[2].partition("\nsignature")[0]
    assert max(map(len, section.splitlines())) <= 80


def test_the_same_resamples_give_compare_and_gates_the_same_interval(bench: Bench) -> None:
    few = ("--bootstrap", "50", "--seed", "3", "--confidence", "0.8")
    bench.evaluate("worse.json", *SIGNIFICANT, *few, "--json")
    spread = json.loads(bench.out)["gates"][0]["spread"]
    assert bench.run("compare", "gt.json", "pred.json", "worse.json", *few, "--json") == 0
    (delta,) = [one for one in json.loads(bench.out)["comparisons"][0]["metrics"] if one["metric"] == "AP50"]
    assert [spread["low"], spread["high"]] == pytest.approx(delta["interval"], abs=1e-12)
    assert spread["probability"] == delta["probability"]


def test_a_bootstrap_tells_every_rule_with_its_interval_and_a_tight_one_with_the_noise(bench: Bench) -> None:
    few = ("--bootstrap", "50")
    assert bench.evaluate("equal.json", "--fail-under", "AP50=0.5", *few, "--json") == 0
    document = json.loads(bench.out)
    (gate,) = document["gates"]
    assert [gate["spread"]["low"], gate["spread"]["high"]] == document["intervals"]["AP50"]
    assert gate["spread"]["of"] == "value"
    assert bench.evaluate("equal.json", "--fail-drop", "AP50=0.02", "--baseline", "main.json", *few) == 0
    assert "warning[gate-below-noise]: gates: --fail-drop AP50=0.02" in bench.err
    (bench.folder / "main.npz").unlink()
    assert bench.evaluate("equal.json", "--fail-drop", "AP50=0.02", "--baseline", "main.json", *few) == 0
    assert "varies by ±" in bench.err  # not the difference, which is not known any more


def test_a_slice_of_one_image_has_no_interval_and_no_significance(bench: Bench) -> None:
    slices = 'gates.baseline = "main.json"\ngates.slices = { one = ["v0/0.jpg"], few = ["v0/*"] }\n'
    rules = ['[[gates.rules]]\nmetric = "AP50"\nmax-drop = 0.9\nslice = "one"\n']
    bench.configure(slices + rules[0] + rules[0].replace('"one"', '"few"'))
    assert bench.evaluate("pred.json", "--bootstrap", "20", "-o", "result.json") == 0
    one, few = bench.document()["gates"]
    assert (one["spread"], few["spread"]) == (None, None)
    assert (one["reason"], few["reason"]) == tuple(
        f"no interval: {what}; an interval needs 20" for what in ("1 image", "10 images")
    )
    bench.configure(slices + rules[0] + 'significance = "non-inferior"\n')
    assert bench.evaluate("pred.json") == 2
    assert "AP50 has no interval: 1 image; an interval needs 20" in bench.err


def test_the_match_table_of_a_baseline_answers_what_its_document_does_not_hold(bench: Bench) -> None:
    rule = "AP[iou=0.55,class=dog]=0.02"
    assert bench.evaluate("worse.json", "--fail-drop", rule, "--baseline", "main.json") == 2
    assert "main.json has no AP[iou=0.55,class=dog]. Re-run evaluate with this rule" in bench.err
    assert bench.evaluate("worse.json", "--fail-significant-drop", rule, "--baseline", "main.json") == 1
    ms = ("--metric", "ms=3", "--fail-over", "external.ms=4")
    for path in ("main.json", "result.json"):
        assert bench.evaluate("pred.json", *ms, "-o", path, "-o", path.replace("json", "npz")) == 0
    bench.configure('[[gates.rules]]\nmetric = "external.ms"\nmax-rise = 1\n')
    for path in ("result.json", "result.npz"):
        assert bench.run("gate", path, *SIGNIFICANT) == 0  # both documents remember what was measured elsewhere


def test_strict_takes_a_rule_below_the_noise_for_an_error(bench: Bench) -> None:
    assert bench.evaluate("equal.json", *SIGNIFICANT, "--strict", "-o", "result.json") == 3
    assert not (bench.folder / "result.json").exists()
    assert bench.evaluate("equal.json", *SIGNIFICANT, "--strict", "--allow", "gate-below-noise") == 0


def test_rules_and_their_bootstrap_come_from_a_configuration(bench: Bench) -> None:
    bench.configure(
        'gates.baseline = "main.json"\n'
        'gates.bootstrap = { resamples = 30, seed = 4, confidence = 0.9, group-by = "groups.csv" }\n'
        '[[gates.rules]]\nmetric = "AP50"\nmax-drop = 0.1\nsignificance = "significant-drop"\nclasses = "*"\n'
    )
    (bench.folder / "groups.csv").write_text("".join(f"v{i % 4}/{i}.jpg,{i % 20}\n" for i in range(N_IMAGES)))
    assert bench.evaluate("worse.json", "--json") == 1
    (gate,) = json.loads(bench.out)["gates"]
    assert (gate["rule"], gate["metric"]) == ("AP50 of * max-drop significant-drop", "AP50[class=dog]")
    found = {name: gate["spread"][name] for name in ("n_resamples", "rng", "confidence_level", "unit", "n_units")}
    assert found == {"n_resamples": 30, "rng": 4, "confidence_level": 0.9, "unit": "group", "n_units": 20}
    assert bench.evaluate("worse.json", "--bootstrap", "20", "--json") == 1
    assert json.loads(bench.out)["gates"][0]["spread"]["n_units"] == N_IMAGES  # options replace what is configured


def test_settings_alone_say_how_a_significance_is_found(bench: Bench) -> None:
    rule = ("--fail-significant-drop", "AP50=0.02", "--baseline", "main.json")
    bench.save("worse.json")
    (bench.folder / "groups.csv").write_text("".join(f"v{i % 4}/{i}.jpg,{i % 20}\n" for i in range(N_IMAGES)))
    for argv in (("evaluate", "gt.json", "worse.json"), ("gate", "result.json")):
        assert bench.run(*argv, *rule, "--seed", "4", "--confidence", "0.9", "--group-by", "groups.csv", "--json") == 1
        spread = json.loads(bench.out)["gates"][0]["spread"]
        found = {name: spread[name] for name in ("n_resamples", "rng", "confidence_level", "unit", "n_units")}
        assert found == {"n_resamples": 1000, "rng": 4, "confidence_level": 0.9, "unit": "group", "n_units": 20}
    bench.configure("gates.bootstrap = { resamples = 30, seed = 4 }\n[[gates.rules]]\nmetric = 'AP'\nmin = 0.1\n")
    assert bench.run("gate", "result.json", "--confidence", "0.8", "--json") == 0
    spread = json.loads(bench.out)["gates"][0]["spread"]
    assert [spread[name] for name in ("n_resamples", "rng", "confidence_level")] == [30, 4, 0.8]


def test_settings_that_nothing_is_drawn_by_end_with_2(bench: Bench) -> None:
    assert bench.evaluate("worse.json", "--fail-under", "AP50=0.02", "--seed", "4") == 2
    assert "--seed needs --bootstrap N" in bench.err


def test_gate_judges_saved_runs_by_their_match_tables(bench: Bench) -> None:
    bench.evaluate("worse.json", *SIGNIFICANT, "--json")
    fresh = json.loads(bench.out)["gates"]
    bench.save("worse.json")
    assert bench.run("gate", "result.json", *SIGNIFICANT, "--json", "-o", "table.csv") == 1
    assert json.loads(bench.out)["gates"] == fresh
    (row,) = csv.DictReader((bench.folder / "table.csv").read_text().splitlines())
    assert (row["significance"], float(row["high"])) == ("significant-drop", fresh[0]["spread"]["high"])
    assert bench.run("gate", "result.npz", "--fail-inferior", "AP50=0.02", "--baseline", "main.npz") == 1
    bench.save("equal.json")
    assert bench.run("gate", "result.json", *SIGNIFICANT) == 0
    assert "gate-below-noise" in bench.out
    assert "warning[gate-below-noise]" in bench.err
    assert bench.run("gate", "result.json", *SIGNIFICANT, "--strict") == 3


def test_a_saved_run_alone_answers_anything(bench: Bench) -> None:
    bench.save("worse.json")
    rule = ("--fail-under", "recall[iou=0.55,score=0.1]=0.5")
    assert bench.run("gate", "result.json", *rule) == 2
    assert bench.run("gate", "result.npz", *rule) == 1
    assert bench.out.endswith("\nFAILED  recall[iou=0.55,score=0.1] 0.4500 < 0.50\n")  # 18 of 40


def test_a_rule_with_a_significance_takes_the_saved_run_of_the_baseline(bench: Bench) -> None:
    (bench.folder / "main.npz").unlink()
    assert bench.evaluate("worse.json", *SIGNIFICANT, "-o", "result.json") == 2
    assert "but main.npz does not exist. Write both: 'jaccard-eval evaluate GT PRED" in bench.err
    assert not (bench.folder / "result.json").exists()
    bench.evaluate("worse.json", "-o", "main.npz")
    assert bench.evaluate("worse.json", *SIGNIFICANT) == 2
    assert "main.npz belongs to a different run" in bench.err
    np.savez(bench.folder / "main.npz", boxes=np.zeros(3))
    assert bench.evaluate("worse.json", *SIGNIFICANT) == 2
    assert "main.npz is not a saved run" in bench.err


def test_a_saved_run_is_the_same_whatever_was_measured_beside_it(bench: Bench) -> None:
    assert bench.evaluate("pred.json", "--score", "0.5", "--bootstrap", "20", "-o", "main.json") == 0
    assert bench.evaluate("pred.json", *SIGNIFICANT) == 0


def test_gate_takes_the_saved_run_of_the_result(bench: Bench) -> None:
    assert bench.evaluate("worse.json", "-o", "result.json") == 0
    assert bench.run("gate", "result.json", *SIGNIFICANT) == 2
    assert "result.npz does not exist" in bench.err


def test_a_baseline_with_a_damaged_saved_run_ends_with_2(bench: Bench) -> None:
    with np.load(bench.folder / "main.npz") as content:
        arrays = dict(content)
    arrays["pred.score"] = arrays["pred.score"][:-1]
    np.savez(bench.folder / "main.npz", **arrays)
    assert bench.evaluate("worse.json", *SIGNIFICANT) == 2
    assert "error[result-edited]: main.npz: " in bench.err


def test_another_archive_is_no_result(bench: Bench) -> None:
    np.savez(bench.folder / "boxes.npz", boxes=np.zeros(3))
    assert bench.run("gate", "boxes.npz", "--fail-under", "AP50=0.5") == 3
    assert "error[result-invalid]: boxes.npz: is an archive of arrays, not a saved run" in bench.err


def test_a_significance_of_what_is_not_resampled_ends_with_2(bench: Bench) -> None:
    rule = ("--fail-significant-drop", "recall[iou=0.5,score=best-f1]=0.02", "--baseline", "main.npz")
    assert bench.evaluate("worse.json", *rule) == 2
    assert "cannot be resampled, because the best score changes with the images. Set a fixed score" in bench.err


def test_recall_at_a_score_has_a_significance(bench: Bench) -> None:
    rule = ("--fail-significant-drop", "recall[iou=0.5,score=0.4,class=dog]=0.02", "--baseline", "main.json", *FEW)
    assert [bench.evaluate(name, *rule) for name in ("worse.json", "equal.json")] == [1, 0]


def test_another_ground_truth_ends_with_2(bench: Bench) -> None:
    truth = bench.document("gt.json")
    truth["annotations"][0]["bbox"][2] = 11
    write_json(bench.folder / "gt.json", truth)
    assert bench.evaluate("worse.json", *SIGNIFICANT) == 2
    assert "cannot compare this run with the baseline: gt was" in bench.err


def test_a_baseline_is_updated_with_its_match_table(bench: Bench) -> None:
    for name in ("main.json", "main.npz"):
        (bench.folder / name).unlink()
    assert bench.evaluate("worse.json", *SIGNIFICANT) == 2
    assert bench.evaluate("worse.json", *SIGNIFICANT, "--allow-missing-baseline") == 0
    assert "--fail-significant-drop AP50=0.02: no baseline" in bench.out
    assert bench.evaluate("pred.json", *SIGNIFICANT, "--update-baseline") == 0
    assert "wrote baseline 'main.json' and 'main.npz'" in bench.err
    before = (bench.folder / "main.npz").read_bytes()
    assert bench.evaluate("worse.json", *SIGNIFICANT, "--update-baseline") == 1
    assert (bench.folder / "main.npz").read_bytes() == before
    assert bench.evaluate("worse.json", *SIGNIFICANT, "--update-baseline", "--exit-zero") == 0
    assert (bench.folder / "main.npz").read_bytes() != before
    assert bench.evaluate("worse.json", *SIGNIFICANT) == 0


def test_a_match_table_that_is_there_is_updated_without_any_rule_on_it(bench: Bench) -> None:
    assert bench.evaluate("worse.json", "--baseline", "main.json", "--update-baseline") == 0
    assert bench.evaluate("worse.json", *INFERIOR) == 0  # both are of this run now


def test_a_baseline_without_its_match_table_gets_one_by_an_update(bench: Bench) -> None:
    (bench.folder / "main.npz").unlink()
    assert bench.evaluate("pred.json", *SIGNIFICANT, "--update-baseline") == 0
    assert "the baseline has no match table" in bench.out
    assert bench.evaluate("pred.json", *SIGNIFICANT) == 0


def test_no_output_replaces_the_match_table_of_the_baseline(bench: Bench) -> None:
    assert bench.evaluate("worse.json", *SIGNIFICANT, "-o", "main.npz") == 2
    assert "main.npz" in bench.err


def test_label_maps_have_no_significance(bench: Bench) -> None:
    Image.fromarray(np.zeros((2, 2), dtype=np.uint8)).save(bench.folder / "map.png")
    maps = ("pixels", "map.png", "map.png")
    assert bench.run(*maps, "-o", "maps.json") == 0
    rule = ("--fail-significant-drop", "mIoU=0.02", "--baseline", "maps.json")
    assert bench.run(*maps, *rule) == 2
    assert bench.run(*maps, *rule, "--allow-missing-baseline") == 2
    assert "Use max-drop without significance (--fail-drop)." in bench.err
    assert bench.run(*maps, "--fail-drop", *rule[1:]) == 0


def test_equal_scores_on_both_sides_of_a_limit_are_told_of(bench: Bench) -> None:
    # 20 of 40 dogs cover 51 of 101 recall values, at a precision of 1 or, behind 20 false alarms, of 20 in 40 at most.
    boxes = [box(i, 1, [left, left, 10, 10], score=0.5) for i in range(20) for left in (0, 50)]
    write_json(bench.folder / "tied.json", boxes)
    code = bench.evaluate("tied.json", "--fail-under", "AP50=0.4", "-o", "result.json")
    (gate,) = bench.document()["gates"]
    assert code == (gate["status"] == "fail")
    assert gate["ties"] == pytest.approx([51 / 101 / 2, 51 / 101], abs=1e-12)
    assert (
        "warning[gate-crossed-by-ties]: gates: --fail-under AP50=0.4: Tied scores: AP50 is between 0.252475 and"
        in bench.err
    )


def test_as_a_process_nothing_but_the_result_is_on_the_standard_output(bench: Bench) -> None:
    done = run_process("evaluate", "gt.json", "equal.json", *INFERIOR, "--json", cwd=bench.folder)
    assert done.returncode == 1
    assert json.loads(done.stdout)["gates"][0]["status"] == "fail"
    assert "Traceback" not in done.stderr
