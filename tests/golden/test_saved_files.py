"""Files that release 0.1 wrote: results, runs, baselines and configurations that every later version reads.

The folder `0.1` is never written again; `0.1/make.sh` says how it was made.
"""

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from command_line import run_here

from jaccard_eval import Gates, Rule, compare, gate, verify

SAVED = Path(__file__).parent / "0.1"
GT, PRED, WORSE = "inputs/gt.json", "inputs/better.json", "inputs/worse.json"
MAPS = ("inputs/maps/gt", "inputs/maps/pred", "--classes", "sky,road,car", "--ignore", "9")
RUNS = ("runs/better.npz", "runs/worse.npz", "runs/voc2012.npz", "baselines/main.npz")

Document = dict[str, Any]


def read(name: str) -> Document:
    """Return a document, of a saved run the one within it."""
    path = SAVED / name
    if path.suffix == ".npz":
        from numpy import load

        with load(path) as arrays:
            return dict(json.loads(arrays["jaccard_eval_run"].tobytes())["result"])
    return dict(json.loads(path.read_text(encoding="utf-8")))


def ask(*argv: str, code: int = 0, cwd: Path = SAVED) -> Document:
    """Run a command in the folder of the saved files, and return its JSON document."""
    done = run_here(*argv, "--json", "--quiet", cwd=cwd)
    assert done.returncode == code, done.stderr
    return dict(json.loads(done.stdout))


FOLDERS = ("results", "runs", "baselines")
DOCUMENTS = sorted(f"{folder}/{path.name}" for folder in FOLDERS for path in (SAVED / folder).glob("*.json"))
EVALUATIONS = [name for name in DOCUMENTS if read(name)["kind"] == "evaluation"]
PIXELS = ["results/pixels.json", "baselines/pixels.json"]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SAVED)  # the paths within the documents


def answers(document: Document) -> Iterator[tuple[dict[str, Any], float | None]]:
    """All that a document has measured: what a rule has to ask for, and the value."""
    for name, value in document["metrics"].items():
        yield {"metric": name}, value
    for row in document["per_class"]:
        for name in row.keys() & {"AP", "AP50", "AP75", "AR100", "AR", "IoU", "Dice", "precision", "recall"}:
            yield {"metric": name, "classes": (row["class"],)}, row[name]
    for point in document.get("operating_points", []):
        place = {"iou": point["iou"], "score": point["score"]}
        if point["class"] is None:
            yield {"metric": "recall", **place}, point["recall"]
            yield {"metric": "F1", **place}, point["f1"]


def test_there_is_a_saved_evaluation_of_every_sort() -> None:
    assert len(EVALUATIONS) == 17
    assert {read(name)["tool"]["version"] for name in (*EVALUATIONS, *PIXELS)} == {"0.1.0"}


@pytest.mark.parametrize("name", [*EVALUATIONS, *RUNS, *PIXELS])
def test_gate_finds_every_value_of_a_saved_result(name: str) -> None:
    asked = list(answers(read(name)))
    rules = tuple(Rule(id=str(i), min=0.0, **what) for i, (what, _) in enumerate(asked))
    found = {int(one.rule): one.value for one in gate(name, Gates(rules=rules, missing_metric="pass"))}
    assert len(rules) >= 8
    assert [plain(found[i]) for i in range(len(rules))] == [value for _, value in asked]


def plain(value: float) -> float | None:
    return None if math.isnan(value) else value


@pytest.mark.parametrize("name", EVALUATIONS)
def test_verify_finds_a_saved_result_the_same_to_the_last_bit(name: str) -> None:
    pred = WORSE if "worse" in name else PRED
    checked = verify(name, GT, pred)
    assert [one.name for one in checked.differences if one.name != "signature.v"] == []
    assert checked.compared >= 50
    assert ask("verify", name, GT, pred)["equal"] is True


def test_verify_tells_a_saved_result_from_other_predictions() -> None:
    saved = read("results/plain.json")["metrics"]["AP"]
    differences = {one.name: (one.saved, one.again) for one in verify("results/plain.json", GT, WORSE).differences}
    assert differences["metrics.AP"] == (saved, read("runs/worse.json")["metrics"]["AP"])
    # Later versions compare more of the same document.
    assert verify("results/plain.json", GT, PRED).compared > read("results/verify.json")["compared"]


@pytest.mark.parametrize("name", EVALUATIONS)
def test_explain_starts_from_the_value_of_a_saved_result(name: str) -> None:
    assert ask("explain", name, "AP")["metric"]["value"] == read(name)["metrics"]["AP"]


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_compare_reads_saved_runs_and_the_documents_beside_them(suffix: str) -> None:
    saved = read("results/compare.json")["comparisons"][0]["metrics"]
    (versus,) = compare(None, f"runs/worse{suffix}", f"runs/better{suffix}").others
    assert {one.metric: one.delta for one in versus.summary} == {one["metric"]: one["delta"] for one in saved}
    for one, side in (("baseline", "worse"), ("value", "better")):
        assert {row["metric"]: row[one] for row in saved} == read(f"runs/{side}.json")["metrics"]


@pytest.mark.parametrize("baseline", ["baselines/main.json", "baselines/main.npz", "results/plain.json"])
def test_a_saved_baseline_is_compared_with(baseline: str) -> None:
    argv = ("--fail-drop", "AP=0.01", "--baseline", baseline, "--isolated")
    (same,) = ask("evaluate", GT, PRED, *argv)["gates"]
    assert (same["baseline"], same["delta"]) == (read("results/plain.json")["metrics"]["AP"], 0.0)
    (worse,) = ask("evaluate", GT, WORSE, *argv, code=1)["gates"]
    assert worse["delta"] == read("runs/worse.json")["metrics"]["AP"] - same["baseline"]
    (judged,) = ask("gate", "runs/worse.json", *argv, code=1)["gates"]
    assert judged["delta"] == worse["delta"]


def test_a_saved_baseline_of_label_maps_is_compared_with() -> None:
    argv = ("--fail-drop", "mIoU=0.01", "--baseline", "baselines/pixels.json", "--isolated")
    (same,) = ask("pixels", *MAPS, *argv)["gates"]
    assert (same["baseline"], same["delta"]) == (read("results/pixels.json")["metrics"]["mIoU"], 0.0)


# By the values of the saved runs: AP .6616 (worse: .3463), AP50 of person .8614, recall of person 13 of 15, of car
# 9 of 11; cat has no object; 2 false positives on the 6 images of the slice.
IN_TOML = [
    ("AP", "min", "warn"),
    ("AP50", "max-drop", "pass"),
    ("AP50", "max-drop-relative", "pass"),
    ("recall[iou=0.5,score=0.4,class=person]", "min", "pass"),
    ("recall[iou=0.5,score=0.4,class=car]", "min", "pass"),
    ("recall[iou=0.5,score=0.4,class=cat]", "min", "skip"),
    ("count-below(AP50[class=*], 0.3)", "max", "warn"),
    ("FPPI[iou=0.5,score=0.4]", "max", "fail"),
    ("AP", "min", "pass"),
    ("external.latency_ms", "max", "pass"),
]
IN_YAML = [
    ("AP", "min", "pass"),
    ("AP50[class=person]", "min", "warn"),
    ("recall[iou=0.5,score=best-f1]", "min", "pass"),
]


def verdicts(document: Document) -> list[tuple[str, str, str]]:
    return [(one["metric"], one["check"], one["status"]) for one in document["gates"]]


@pytest.mark.parametrize(
    "judge", [["gate", "../runs/better.npz"], ["evaluate", "../inputs/gt.json", "../inputs/better.json"]]
)
def test_the_configuration_of_a_folder_is_found_and_judges(judge: list[str]) -> None:
    found = ask(*judge, "--metrics-file", "external.json", cwd=SAVED / "config", code=1)
    assert verdicts(found) == IN_TOML
    spread = found["gates"][0]["spread"]
    assert (spread["n_resamples"], spread["confidence_level"], spread["rng"]) == (100, 0.9, 3)


def test_a_configuration_in_yaml_judges() -> None:
    assert verdicts(ask("gate", "runs/better.npz", "--config", "config/gates.yaml")) == IN_YAML


@pytest.mark.parametrize(("run", "code"), [("better", 0), ("worse", 1)])
def test_a_table_of_pyproject_judges_with_the_saved_run_of_its_baseline(run: str, code: int) -> None:
    found = ask("gate", f"../../runs/{run}.npz", cwd=SAVED / "config/project", code=code)
    assert verdicts(found) == [("AP", "max-drop", "fail" if code else "pass")]
    assert found["gates"][0]["baseline"] == read("results/plain.json")["metrics"]["AP"]


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_class_map_is_read(suffix: str) -> None:
    mapped = ask("evaluate", GT, PRED, "--isolated", "--class-map", f"config/class-map.{suffix}")
    assert mapped["metrics"] == read("results/class-map.json")["metrics"] != read("results/plain.json")["metrics"]


def test_a_file_of_slices_and_a_file_of_groups_are_read() -> None:
    noise = ("--bootstrap", "20", "--group-by", "config/groups.csv")
    found = ask("evaluate", GT, PRED, "--isolated", "--slices", "config/slices.toml", *noise)
    saved = {one["slice"]: one["AP"] for one in read("results/slices.json")["slices"]}
    assert {one["slice"]: one["AP"] for one in found["slices"]} == {name: saved[name] for name in ("odd", "even")}
    assert (found["bootstrap"]["unit"], found["bootstrap"]["n_units"]) == ("group", 3)


AGAIN = {
    "pixels": ("pixels", *MAPS),
    "compare": ("compare", "runs/worse.npz", "runs/better.npz", "--bootstrap", "50"),
    "explain": ("explain", GT, PRED, "AP50[class=person]", "--against", "voc2012"),
    "inspect": ("inspect", GT, PRED),
    "sensitivity": ("sensitivity", GT, PRED, "--rounds", "2", "--noise", "1"),
    "overlap": ("overlap", "6,1,18,9", "1,3,13,11"),
    "errors": ("evaluate", GT, PRED, "--errors", "--isolated"),
}


@pytest.mark.parametrize("name", AGAIN)
def test_every_number_of_a_saved_document_comes_out_again(name: str) -> None:
    saved, again = numbers(read(f"results/{name}.json")), numbers(ask(*AGAIN[name]))
    assert len(saved) >= 10
    assert {place: again.get(place) for place in saved} == saved


def numbers(document: Any, place: str = "") -> dict[str, float]:
    """All numbers of a document by their places, but for those of messages."""
    if isinstance(document, dict):
        parts = [(key, one) for key, one in document.items() if key not in ("warnings", "findings")]
    elif isinstance(document, list):
        parts = list(enumerate(document))
    else:
        return {place: document} if isinstance(document, int | float) else {}
    return {key: one for name, part in parts for key, one in numbers(part, f"{place}/{name}").items()}


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is written for other programs, written now as it was then."""
    folder = tmp_path_factory.mktemp("cells")
    tables = ("thresholds.yaml", "confusion.csv", "curves.csv", "calibration.csv")
    gates = ("junit.xml", "metrics.txt", "badge.json", "gl-code-quality-report.json")
    rules = ("--fail-under", "AP=0.9", "--fail-under", "recall[iou=0.5,score=0.4,class=dog]=0.5",
             "--fail-over", "external.latency_ms=15", "--metrics-file", "config/external.json")  # fmt: skip
    for names, further, code in ((tables, (), 0), (gates, rules, 1)):
        outputs = [part for name in names for part in ("-o", str(folder / name))]
        done = run_here("evaluate", GT, PRED, "--isolated", *further, *outputs, cwd=SAVED)
        assert done.returncode == code, done.stderr
    return folder


def test_ci_systems_know_saved_gates_again(cells: Path) -> None:
    """Tests are known by their class and name, samples by theirs, violations by their fingerprint."""
    for read_cell, name in (
        (junit_cases, "junit.xml"),
        (samples, "metrics.txt"),
        (json.loads, "badge.json"),
        (fingerprints, "gl-code-quality-report.json"),
        (yaml.safe_load, "thresholds.yaml"),
        (table, "confusion.csv"),
        (table, "curves.csv"),
        (table, "calibration.csv"),
    ):
        saved, now = (read_cell((folder / name).read_text(encoding="utf-8")) for folder in (SAVED / "cells", cells))
        assert saved, name
        assert now == saved, name


def junit_cases(text: str) -> list[tuple[str | None, ...]]:
    cases = ElementTree.fromstring(text).iter("testcase")
    return [(one.get("classname"), one.get("name"), *(part.tag for part in one)) for one in cases]


def samples(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(("#", "jaccard_eval_info"))]


def fingerprints(text: str) -> list[tuple[str, str]]:
    return [(one["fingerprint"], one["severity"]) for one in json.loads(text)]


def table(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))


@pytest.mark.parametrize("name", [EVALUATIONS[0], RUNS[0]])
def test_a_result_without_a_digest_is_read_with_a_note(name: str) -> None:
    for argv in (("gate", name, "--fail-under", "AP=0.01"), ("verify", name, GT, PRED)):
        warnings = ask(*argv)["warnings"]
        assert ("digest-missing", "note") in [(found["code"], found["severity"]) for found in warnings]
