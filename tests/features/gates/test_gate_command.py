"""Gates on the command line: exit codes of every path, what is written before them, what is said, and baselines."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import box, command, environment, run_process, write_json, write_pair
from PIL import Image

from jaccard_eval.cli import run as _run

AP50 = 51 / 101 / 2  # one of two dogs is found first, at 51 of 101 recall points; the cat is missed
FLOOR = '[[gates.rules]]\nid = "floor"\nmetric = "AP50"\nmin = 0.2\n'


class Bench:
    """One folder with ground truth and predictions, in which commands run."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys
        self.out = self.err = ""
        write_pair(folder)

    def run(self, *argv: str) -> int:
        code = _run.run(argv)
        self.out, self.err = self.capsys.readouterr()
        return code

    def evaluate(self, *argv: str) -> int:
        return self.run("evaluate", "gt.json", "pred.json", *argv)

    def configure(self, text: str, name: str = "jaccard-eval.toml") -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def enlarge(self, n_images: int) -> None:
        """Have so many images with a dog each, of which every other one is found."""
        dogs = [box(at, 1, [0, 0, 10, 10]) for at in range(1, n_images + 1)]
        gt = {
            "images": [{"id": dog["image_id"]} for dog in dogs],
            "annotations": [{"id": dog["image_id"], "area": 100, "iscrowd": 0, **dog} for dog in dogs],
            "categories": [{"id": 1, "name": "dog"}],
        }
        write_json(self.folder / "gt.json", gt)
        write_json(self.folder / "pred.json", [dog | {"score": 1 / dog["image_id"]} for dog in dogs[::2]])

    def lose_the_dog(self) -> None:
        """Break the model: it finds nothing any more."""
        (self.folder / "pred.json").write_text(
            '[{"image_id": 2, "category_id": 2, "bbox": [0, 0, 5, 5], "score": 0.9}]'
        )

    def document(self, name: str = "result.json") -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / name).read_text())
        return content


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path, capsys)


def test_a_rule_that_holds_ends_with_0_and_is_shown_with_its_value(bench: Bench) -> None:
    assert bench.evaluate("--fail-under", "AP50=0.2") == 0
    (row,) = [line for line in bench.out.splitlines() if "--fail-under" in line]
    assert row.split() == ["pass", "--fail-under", "AP50=0.2", "0.2525", ">=", "0.2", "+0.0525", "3"]
    assert bench.out.endswith("\npassed 1 gate\n")
    assert "gate" not in bench.err


def test_a_broken_rule_ends_with_1_after_all_outputs_are_written(bench: Bench) -> None:
    outputs = ("result.json", "report.md", "table.csv", "report.txt", "junit.xml")
    assert bench.evaluate("--fail-under", "AP50=0.9", *(word for name in outputs for word in ("-o", name))) == 1
    assert all((bench.folder / name).stat().st_size for name in outputs)
    # The report ends with what failed: the other stream does not say it again.
    assert bench.out.endswith("\nFAILED  AP50 0.2525 < 0.90\n")
    assert "gate" not in bench.err
    assert (bench.folder / "report.txt").read_text().endswith("\nFAILED  AP50 0.2525 < 0.90\n")
    (gate,) = bench.document()["gates"]
    assert (gate["status"], gate["value"], gate["limit"]) == ("fail", pytest.approx(AP50), 0.9)
    assert "| fail | --fail-under AP50=0.9 |" in (bench.folder / "report.md").read_text()


def test_json_on_the_standard_output_stays_one_document(bench: Bench) -> None:
    assert bench.evaluate("--fail-under", "AP50=0.9", "--json") == 1
    assert json.loads(bench.out)["gates"][0]["status"] == "fail"
    assert "gate failed: --fail-under AP50=0.9: AP50 = 0.2525, required >= 0.9; margin -0.6475; n 3" in bench.err


def test_a_value_that_is_not_told_from_its_limit_by_four_decimals_is_shown_with_more(bench: Bench) -> None:
    assert bench.evaluate("--fail-under", "AP50=0.2525") == 1  # 51 / 202 is 0.252475...
    assert bench.out.endswith("\nFAILED  AP50 0.25248 < 0.2525\n")
    assert "0.25248  >= 0.2525  -2.5e-05" in bench.out


def test_a_reference_with_equals_signs_is_split_at_the_last(bench: Bench) -> None:
    rule = "recall[iou=0.5,score=0.4,class=dog]"
    assert [bench.evaluate("--fail-under", f"{rule}={floor}") for floor in (0.5, 0.6)] == [0, 1]
    assert bench.evaluate("--fail-over", "FP[iou=0.5,score=0]=0") == 1
    assert bench.evaluate("--fail-over", "fp=0", "--score", "0.4") == 1  # names without a score mean that of the run


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["--fail-under", "AP50=45"], "min = 45, but 'AP50' is between 0 and 1. Did you mean 0.45?"),
        (["--fail-under", "mapp50=0.5"], "Did you mean 'AP50'?"),
        (["--fail-under", "F1=0.5"], "F1 needs a score; write F1[iou=0.5,score=0.5]. Or evaluate with --score 0.5"),
        (["--fail-under", "AP50[class=dgo]=0.5"], "Did you mean 'dog'?"),
        (["--fail-under", "AP50"], "expected METRIC=VALUE, such as AP50=0.5; got 'AP50'"),
        (["--fail-under", "recall[iou=0.5]"], "expected METRIC=VALUE"),
        (["--fail-under", "AP50=half"], "'half' is not a number"),
        (["--fail-undr", "AP50=0.5"], "--fail-under"),
        (["--fail-drop", "AP=0.01"], "needs a baseline. Add --baseline FILE"),
        (["--fail-drop", "AP=0.01", "--baseline", "no.json"], "baseline 'no.json' does not exist"),
        (["--baseline", "no.json"], "--baseline needs rules"),
        (["--exit-zero"], "--exit-zero needs rules"),
        (["--metric", "fps=30"], "--metric needs rules"),
        (["--fail-under", "AP=0.1", "--metric", "fps=30"], "no rule uses --metric fps"),
        (["--fail-over", "external.ms=3"], "no value for 'external.ms'"),
        (["--fail-over", "external.ms=3", "--metric", "ms"], "expected NAME=VALUE"),
        (["--fail-over", "external.ms=3", "--metric", "ms=1", "--metric", "ms=2"], "the same name is given twice"),
        (["--config", "no.toml"], "no such file"),
        (["--config", "gt.json"], "not valid TOML"),
        (["--config", "gates.toml", "--isolated"], "exclude each other"),
        (["--update-baseline"], "--update-baseline needs --baseline FILE.json"),
        (["--update-baseline", "--baseline", "main.txt"], "FILE.json"),
    ],
)
def test_a_wrong_rule_or_option_ends_with_2_and_writes_nothing(bench: Bench, argv: Sequence[str], part: str) -> None:
    assert bench.evaluate(*argv, "-o", "out.json") == 2
    assert part in bench.err
    assert bench.out == ""
    assert not (bench.folder / "out.json").exists()


def test_data_that_cannot_be_used_ends_with_3_whatever_the_gates_are(bench: Bench) -> None:
    (bench.folder / "pred.json").write_text("[")
    assert bench.evaluate("--fail-under", "AP50=0.2") == 3


def test_exit_zero_reports_a_failure_and_ends_with_0(bench: Bench) -> None:
    assert bench.evaluate("--fail-under", "AP50=0.9", "--exit-zero") == 0
    assert bench.out.endswith("\nFAILED  AP50 0.2525 < 0.90\n")
    assert "exit code 0 because of --exit-zero" in bench.err


def test_quiet_says_what_failed_and_nothing_else(bench: Bench) -> None:
    assert bench.evaluate("--fail-under", "AP50=0.2", "--fail-under", "AP50=0.9", "--quiet") == 1
    assert bench.out == "FAILED  AP50 0.2525 < 0.90\n"
    assert "gate" not in bench.err


def test_the_configuration_of_the_project_is_used_unless_isolated(bench: Bench) -> None:
    bench.configure(FLOOR.replace("0.2", "0.9"))
    assert bench.evaluate() == 1
    assert bench.err.splitlines()[0] == "gates from jaccard-eval.toml"
    assert bench.out.endswith("\nFAILED  AP50 0.2525 < 0.90\n")
    assert bench.evaluate("--isolated") == 0
    assert "Gates" not in bench.out
    assert bench.evaluate("--fail-under", "AP50=0.1") == 1  # both the file's rule and this one


def test_a_named_configuration_is_used_instead(bench: Bench) -> None:
    bench.configure(FLOOR.replace("0.2", "0.9"))
    bench.configure(FLOOR, "lenient.toml")
    assert bench.evaluate("--config", "lenient.toml") == 0


def test_a_configuration_that_says_nothing_of_gates_is_refused_when_named(bench: Bench) -> None:
    bench.configure("", "empty.toml")
    assert bench.evaluate("--config", "empty.toml") == 2
    bench.configure("# nothing yet\n", "empty.toml")
    assert bench.evaluate("--config", "empty.toml") == 2
    assert "has no gates" in bench.err


def test_a_misspelt_key_ends_with_2_before_anything_is_read(bench: Bench) -> None:
    bench.configure(FLOOR + "wran-min = 0.3\n")
    assert bench.run("evaluate", "missing.json", "missing.json") == 2
    assert "jaccard-eval.toml:1: gates.rules[0]: unknown key 'wran-min'. Did you mean 'warn-min'" in bench.err


def test_a_misspelt_class_of_a_configured_rule_ends_with_2_with_its_line(bench: Bench) -> None:
    bench.configure(f'{FLOOR}\n[[gates.rules]]\nmetric = "AP50"\nclasses = ["dgo"]\nmin = 0.1\n')
    assert bench.evaluate() == 2
    assert "jaccard-eval.toml:6: gates.rules[1]: no class matches 'dgo'. Did you mean 'dog'?" in bench.err


def test_a_drop_against_the_baseline_fails_and_says_from_what(bench: Bench) -> None:
    assert bench.evaluate("-o", "base.json") == 0
    drop = ("--fail-drop", "AP50=0.01", "--baseline", "base.json")
    assert bench.evaluate(*drop) == 0
    bench.lose_the_dog()
    assert bench.evaluate(*drop) == 1
    assert bench.out.endswith("\nFAILED  AP50 dropped by 0.2525, more than 0.01\n")


def test_a_gating_run_never_makes_or_changes_its_baseline(bench: Bench) -> None:
    assert bench.evaluate("--fail-drop", "AP=0.01", "--baseline", "base.json", "--allow-missing-baseline") == 0
    assert "--fail-drop AP=0.01: no baseline" in bench.out
    assert bench.out.endswith("\ngates: 1 skipped\n")
    assert not (bench.folder / "base.json").exists()
    bench.evaluate("-o", "base.json")
    before = (bench.folder / "base.json").read_bytes()
    bench.lose_the_dog()
    bench.evaluate("--fail-under", "AP=0.01", "--baseline", "base.json")
    assert (bench.folder / "base.json").read_bytes() == before


def test_the_baseline_is_written_when_asked_for(bench: Bench) -> None:
    update = ("--fail-drop", "AP50=0.01", "--baseline", "base.json", "--update-baseline")
    assert bench.evaluate(*update) == 0
    assert "wrote baseline 'base.json'" in bench.err
    assert bench.document("base.json")["metrics"]["AP50"] == pytest.approx(AP50)


def test_an_update_makes_the_folders_of_the_baseline_and_names_them(bench: Bench) -> None:
    bench.enlarge(24)  # an interval needs 20 images
    update = ("--fail-significant-drop", "AP=0.01", "--baseline", "metrics/main/base.json", "--update-baseline")
    assert bench.evaluate(*update) == 0
    assert bench.err.splitlines()[-1] == (
        "made folder 'metrics/main'; wrote baseline 'metrics/main/base.json' and 'metrics/main/base.npz'"
    )
    assert {path.name for path in (bench.folder / "metrics/main").iterdir()} == {"base.json", "base.npz"}
    assert bench.evaluate(*update) == 0
    assert "made folder" not in bench.err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--baseline", "new/main.json", "--allow-missing-baseline", "--fail-drop", "AP=0.01"], 0),  # no update
        (["--baseline", "new/main.json", "--update-baseline", "--fail-under", "AP50=0.9"], 1),  # a gate fails
        (["--baseline", "new/main.json", "--update-baseline", "--classes", "dgo"], 2),
        (["--baseline", "/dev/null/new/main.json", "--update-baseline"], 4),
        (["--baseline", "http://127.0.0.1:9/main.json", "--update-baseline"], 4),
        (["--baseline", "new/deep/main.json", "--update-baseline", "-o", "/dev/full"], 4),  # fails while it is written
    ],
    ids=lambda value: " ".join(value[:2] + value[-2:]) if isinstance(value, list) else str(value),
)
def test_no_folder_is_made_without_a_baseline_in_it(bench: Bench, options: list[str], code: int) -> None:
    if "/dev/full" in options and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    before = sorted(bench.folder.rglob("*"))
    assert bench.evaluate(*options) == code
    assert sorted(bench.folder.rglob("*")) == before


def test_without_rules_a_baseline_can_be_made(bench: Bench) -> None:
    assert bench.evaluate("--baseline", "base.json", "--update-baseline") == 0
    assert bench.document("base.json")["gates"] == []


def test_a_run_that_fails_does_not_become_the_baseline_unless_it_is_accepted(bench: Bench) -> None:
    update = ("--fail-drop", "AP50=0.01", "--baseline", "base.json", "--update-baseline")
    bench.evaluate(*update)
    before = (bench.folder / "base.json").read_bytes()
    bench.lose_the_dog()
    assert bench.evaluate(*update, "-o", "result.json") == 1
    assert "baseline 'base.json' not updated" in bench.err
    assert (bench.folder / "base.json").read_bytes() == before
    assert (bench.folder / "result.json").exists()
    assert bench.evaluate(*update, "--exit-zero") == 0
    assert bench.document("base.json")["metrics"]["AP50"] == 0.0


def test_a_baseline_of_other_ground_truth_ends_with_2_and_can_be_replaced(bench: Bench) -> None:
    drop = ("--fail-drop", "AP50=0.01", "--baseline", "base.json")
    bench.evaluate("-o", "base.json")
    gt = bench.document("gt.json")
    gt["annotations"][0]["bbox"][0] += 1
    (bench.folder / "gt.json").write_text(json.dumps(gt))
    assert bench.evaluate(*drop) == 2
    assert "cannot compare this run with the baseline: gt was 'sha-256-128:" in bench.err
    assert bench.evaluate(*drop, "--update-baseline") == 0
    assert "has different rules or ground truth; not compared" in bench.err
    assert bench.evaluate(*drop) == 0


def test_a_baseline_of_another_protocol_ends_with_2(bench: Bench) -> None:
    bench.evaluate("--protocol", "voc2012", "-o", "base.json")
    assert bench.evaluate("--fail-under", "AP50=0.2", "--baseline", "base.json") == 2
    assert "protocol was 'voc2012', now 'coco'" in bench.err
    assert "Evaluate with --protocol voc2012 for its rules, or update it with --update-baseline." in bench.err


def test_no_output_may_replace_the_baseline_and_no_baseline_another_file(bench: Bench) -> None:
    bench.evaluate("-o", "base.json")
    assert bench.evaluate("--fail-under", "AP=0.1", "--baseline", "base.json", "-o", "base.json") == 2
    before = (bench.folder / "gt.json").read_bytes()
    assert bench.run("evaluate", "gt.json", "pred.json", "--baseline", "gt.json", "--update-baseline") in (2, 3)
    assert (bench.folder / "gt.json").read_bytes() == before


def test_a_baseline_that_is_no_result_ends_with_2(bench: Bench) -> None:
    assert bench.evaluate("--fail-drop", "AP=0.1", "--baseline", "pred.json") == 2
    assert "error[result-invalid]: pred.json: is not a result of jaccard-eval" in bench.err


def test_the_path_of_a_configured_baseline_starts_at_the_configuration(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.configure('[gates]\nbaseline = "metrics/main.json"\n[[gates.rules]]\nmetric = "AP50"\nmax-drop = 0.01\n')
    (bench.folder / "metrics").mkdir()
    (bench.folder / "src").mkdir()
    monkeypatch.chdir(bench.folder / "src")
    assert bench.run("evaluate", "../gt.json", "../pred.json", "--update-baseline") == 0
    assert (bench.folder / "metrics" / "main.json").exists()


def test_values_from_elsewhere_come_from_options_and_files(bench: Bench) -> None:
    (bench.folder / "perf.json").write_text('{"device": "t4", "latency": {"p50_ms": 9, "p95_ms": 18.5}, "fps": null}')
    ceilings = ("--fail-over", "external.latency.p95_ms=20", "--fail-over", "external.latency.p50_ms=10")
    assert bench.evaluate(*ceilings, "--metrics-file", "perf.json") == 0
    assert bench.evaluate(*ceilings, "--metrics-file", "perf.json", "--metric", "latency.p50_ms=11") == 1
    assert bench.evaluate("--fail-under", "external.fps=30", "--metrics-file", "perf.json") == 1  # null is undefined
    assert bench.evaluate("--fail-under", "external.device=30", "--metrics-file", "perf.json") == 2


def test_a_saved_result_is_judged_again_without_its_inputs(bench: Bench) -> None:
    bench.evaluate("-o", "result.json")
    (bench.folder / "gt.json").unlink()
    assert bench.run("gate", "result.json", "--fail-under", "AP50=0.2") == 0
    assert bench.run("gate", "result.json", "--fail-under", "AP50[class=dog]=0.6", "-o", "verdict.json") == 1
    (gate,) = bench.document("verdict.json")["gates"]
    assert (gate["value"], gate["n"]) == (pytest.approx(51 / 101), 2)
    assert bench.document("verdict.json")["kind"] == "gate"


def test_a_saved_result_answers_the_rules_that_it_was_made_with(bench: Bench) -> None:
    bench.configure(
        '[gates]\nslices.first = ["a.*"]\n'
        '[[gates.rules]]\nmetric = "recall"\nclasses = "*"\nat = { iou = 0.5, score = 0.4 }\nmin = 0.5\n'
        '[[gates.rules]]\nmetric = "AP60"\nclasses = "*"\naggregate = "mean"\nmin = 0.1\n'
        '[[gates.rules]]\nmetric = "AP50"\nslice = "first"\nmin = 0.1\n'
    )
    assert bench.evaluate("-o", "result.json") == 1  # the recall of cat is 0
    assert bench.run("gate", "result.json", "-o", "verdict.json") == 1
    assert bench.document("verdict.json")["gates"] == bench.document()["gates"]


def test_what_a_saved_result_does_not_hold_ends_with_2_and_says_what_to_do(bench: Bench) -> None:
    rule = ("--fail-under", "AP85=0.01")
    bench.evaluate("-o", "result.json", "-o", "run.npz")
    assert bench.run("gate", "result.json", *rule) == 2
    assert "result.json has no AP85. Re-run evaluate with this rule, or use the saved run (.npz)." in bench.err
    assert bench.run("gate", "run.npz", *rule) == 0
    bench.evaluate("-o", "result.json", *rule)
    assert bench.run("gate", "result.json", *rule) == 0


def test_other_tools_names_of_metrics_are_understood_in_options_and_in_files(bench: Bench) -> None:
    bench.configure("".join(f'[[gates.rules]]\nmetric = "{name}"\nmin = 0.01\n' for name in ("mAP50", "mAP50-95")))
    written = ("mAP75", "mAP@0.5", "mAP@[.5:.95]", "AP@0.5[class=dog]")
    options = [part for name in written for part in ("--fail-under", f"{name}=0.01")]
    assert bench.evaluate("-o", "result.json", *options) == 0
    gates = bench.document()["gates"]
    assert [gate["metric"] for gate in gates] == ["AP50", "AP", "AP75", "AP50", "AP", "AP50[class=dog]"]
    assert [gate["rule"] for gate in gates[:2]] == ["AP50 min", "AP min"]
    assert bench.run("gate", "result.json", *options) == 0


def test_the_mean_over_thresholds_of_coco_is_not_that_over_others(bench: Bench) -> None:
    rule = ("--fail-under", "mAP50-95=0.01")
    assert bench.evaluate(*rule, "--protocol", "voc2012") == 2
    assert "IoU 0.5:0.95 is not evaluated; thresholds are 0.5. Evaluate with --iou 0.5:0.95:0.05" in bench.err
    assert bench.evaluate(*rule, "--protocol", "voc2012", "--iou", "0.5:0.95:0.05") == 0


def test_a_threshold_off_the_grid_is_named_with_the_option_that_evaluates_it(bench: Bench) -> None:
    assert bench.evaluate("--fail-under", "AP83=0.01") == 2
    assert "IoU 0.83 is not evaluated" in bench.err
    assert "Evaluate with --iou 0.83." in bench.err
    assert bench.evaluate("--fail-under", "AP83=0.01", "--iou", "0.83") == 0


def test_a_saved_result_is_compared_with_a_baseline(bench: Bench) -> None:
    bench.evaluate("-o", "base.json")
    bench.lose_the_dog()
    bench.evaluate("-o", "result.json")
    assert bench.run("gate", "result.json", "--fail-drop", "AP50=0.01", "--baseline", "base.json") == 1
    assert bench.run("gate", "base.json", "--fail-drop", "AP50=0.01", "--baseline", "base.json") == 0


@pytest.mark.parametrize(
    ("argv", "code", "part"),
    [
        (["gate"], 2, "Missing argument 'RESULT'"),
        (["gate", "result.json"], 2, "no rules"),
        (["gate", "gt.json", "--fail-under", "AP=0.1"], 3, "is not a result of jaccard-eval: it has no 'kind'"),
        (["gate", "missing.json", "--fail-under", "AP=0.1"], 3, "no such file"),
        (["gate", "result.json", "--update-baseline"], 2, "No such option"),
    ],
)
def test_gate_refuses_what_it_cannot_judge(bench: Bench, argv: Sequence[str], code: int, part: str) -> None:
    bench.evaluate("-o", "result.json")
    assert bench.run(*argv) == code
    assert part in bench.err


@pytest.mark.parametrize("change", [{"gates": None}, {"support": {}}, {"schema": 2}, {"metrics": {"AP": "high"}}])
def test_a_damaged_result_ends_with_3(bench: Bench, change: dict[str, Any]) -> None:
    bench.evaluate("-o", "result.json")
    (bench.folder / "result.json").write_text(json.dumps(bench.document() | change))
    assert bench.run("gate", "result.json", "--fail-under", "AP=0.1") == 3
    assert "error[result-invalid]: result.json: " in bench.err


def test_the_schema_is_printed_without_a_result(bench: Bench) -> None:
    assert bench.run("gate", "--schema") == 0
    assert json.loads(bench.out)["properties"]["gates"]["type"] == "object"


def test_label_maps_are_gated_by_the_same_options(bench: Bench) -> None:
    for name, values in (("true.png", [0, 0, 0, 1]), ("found.png", [0, 0, 1, 1])):
        Image.fromarray(np.array([values], dtype=np.uint8)).save(bench.folder / name)
    pixels = ("pixels", "true.png", "found.png")  # IoU 2/3 and 1/2
    assert bench.run(*pixels, "--fail-under", "mIoU=0.58", "--fail-under", "IoU[class=1]=0.5", "-o", "maps.json") == 0
    assert bench.run(*pixels, "--fail-under", "IoU[class=1]=0.51") == 1
    assert bench.run(*pixels, "--fail-under", "AP=0.1") == 2
    assert bench.run("gate", "maps.json", "--fail-under", "IoU[class=0]=0.67") == 1


@pytest.mark.skipif(os.name == "nt", reason="POSIX streams")
def test_a_reader_that_has_gone_away_does_not_turn_a_failure_into_a_success(bench: Bench) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    argv = command("evaluate", "gt.json", "pred.json", "--fail-under", "AP50=0.9", "-o", "result.json")
    done = subprocess.run(argv, stdout=writing, stderr=subprocess.PIPE, env=environment(), check=False, timeout=60)
    os.close(writing)
    assert done.returncode == 1
    assert b"gate failed" in done.stderr
    assert b"Traceback" not in done.stderr
    assert bench.document()["gates"][0]["status"] == "fail"


def test_as_a_process_the_exit_codes_are_those_of_the_gates(bench: Bench) -> None:
    shutil.copy("pred.json", "again.json")
    codes = [
        run_process("evaluate", "gt.json", "pred.json", "--fail-under", f"AP50={floor}").returncode
        for floor in ("0.2", "0.9", "20")
    ]
    assert codes == [0, 1, 2]
