"""Which exit code a file has that cannot be used: 3 when it is measured, 2 when it sets up the run, 4 when written."""

import io
import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import run_here, write_pair

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="links, /proc and limits of Linux")

UNUSABLE: dict[str, Callable[[Path], object]] = {
    "dangling link": lambda path: path.symlink_to("gone"),
    "loop of links": lambda path: path.symlink_to(path.name),
    "pipe": lambda path: os.mkfifo(path, 0o600),
    "device": lambda path: path.symlink_to("/dev/null"),
    "unreadable": lambda path: path.symlink_to("/proc/self/mem"),  # opens, and cannot be read from its start
}
MEASURED = {
    "ground truth": ["{it}.json", "{pred}"],
    "predictions": ["{gt}", "{it}.json"],
    "predictions of a named format": ["{gt}", "{it}", "--pred-format", "csv"],
    "label in a folder": ["{labels}", "{labels}", "--names", "a", "--assume-score", "1"],
    "saved result": ["gate", "{it}.json", "--fail-under", "AP=0"],
    "saved run": ["gate", "{it}.npz", "--fail-under", "AP=0"],
    "compared": ["compare", "{gt}", "{it}.json", "{pred}"],
    "compared run": ["compare", "{it}.npz", "{it}.npz"],
    "verified": ["verify", "{it}.json", "{gt}", "{pred}"],
    "explained": ["explain", "{it}.json", "{pred}"],
    "explained result": ["explain", "{it}.json"],
    "inspected": ["inspect", "{it}.json"],
    "converted": ["convert", "{it}.json", "{folder}/out.csv"],
    "suppressed": ["nms", "{it}.json", "-o", "{folder}/out.json"],
    "label maps": ["pixels", "{it}.png", "{it}.png"],
    "folder of images": ["{gt}", "{pred}", "--images", "{it}"],
}
SETTINGS = {
    "configuration": ["{gt}", "{pred}", "--config", "{it}.toml"],
    "YAML configuration": ["{gt}", "{pred}", "--config", "{it}.yaml"],
    "baseline": ["{gt}", "{pred}", "--fail-drop", "AP=0", "--baseline", "{it}.json"],
    "baseline that may be missing": [
        *("{gt}", "{pred}", "--fail-drop", "AP=0", "--baseline", "{it}.json", "--allow-missing-baseline"),
    ],
    "saved run as baseline": ["{gt}", "{pred}", "--fail-drop", "AP=0", "--baseline", "{it}.npz"],
    "baseline to update": ["{gt}", "{pred}", "--update-baseline", "--baseline", "{it}.json"],
    "values": ["{gt}", "{pred}", "--fail-under", "external.a=0", "--metrics-file", "{it}.json"],
    "names": ["{gt}", "{pred}", "--names", "{it}.txt"],
    "names as YAML": ["{gt}", "{pred}", "--gt-names", "{it}.yaml"],
    "names as JSON": ["{gt}", "{pred}", "--pred-names", "{it}.json"],
    "class map": ["{gt}", "{pred}", "--class-map", "{it}.json"],
    "class map as YAML": ["{gt}", "{pred}", "--class-map", "{it}.yaml"],
    "slices": ["{gt}", "{pred}", "--slices", "{it}.toml"],
    "groups": ["{gt}", "{pred}", "--bootstrap", "10", "--group-by", "{it}.csv"],
    "classes of label maps": ["pixels", "{map}", "{map}", "--classes", "{it}.txt"],
    "colours": ["pixels", "{map}", "{map}", "--colors", "{it}.txt"],
    "list": ["pixels", "{map}", "{map}", "--list", "{it}.txt"],
}
OUTPUTS = {
    "report": ["{gt}", "{pred}", "-o", "{it}.json"],
    "converted": ["convert", "{gt}", "{it}.csv"],
    "suppressed": ["nms", "{pred}", "-o", "{it}.json"],
}


SHOWN = 7  # characters that messages always show of a name, however long


class Bench:
    """Two good sides, a good label map, and something else by the name of whatever a test takes for it."""

    def __init__(self, folder: Path, put: Callable[[Path], object]) -> None:
        self.gt, self.pred = write_pair(folder)
        self.folder, self.put, self.it = folder, put, folder / "odd-one"
        np.save(folder / "map.npy", np.zeros((2, 2), dtype=np.uint8))

    def run(self, argv: list[str]) -> tuple[int, str]:
        labels = self.folder / "labels"
        known = {"gt": self.gt, "pred": self.pred, "folder": self.folder, "map": self.folder / "map.npy"}
        words = [word.format(it=self.it, labels=labels, **known) for word in argv]
        if "{labels}" in argv:
            labels.mkdir()
            (labels / "good.txt").write_text("0 0.5 0.5 0.25 0.25\n")
            self.it = labels / "bad.txt"
        suffixes = {word.removeprefix("{it}") for word in argv if word.startswith("{it}")} or {""}
        for suffix in suffixes:
            self.put(Path(f"{self.it}{suffix}"))
        done = run_here(*words, cwd=self.folder)
        assert self.it.name[:SHOWN] in done.stderr
        return done.returncode, done.stderr


@pytest.fixture(params=UNUSABLE)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, UNUSABLE[request.param])


@pytest.mark.parametrize("what", MEASURED)
def test_what_is_measured_ends_with_3(bench: Bench, what: str) -> None:
    code, said = bench.run(MEASURED[what])
    assert code == 3, said


@pytest.mark.parametrize("what", SETTINGS)
def test_what_sets_up_the_run_ends_with_2(bench: Bench, what: str) -> None:
    code, said = bench.run(SETTINGS[what])
    assert code == 2, said


@pytest.mark.parametrize("what", [one for one in MEASURED if one != "label in a folder"])  # no file has such a name
def test_a_name_too_long_is_no_input(tmp_path: Path, what: str) -> None:
    bench = Bench(tmp_path, lambda _: None)
    bench.it = tmp_path / ("x" * 300)
    assert bench.run(MEASURED[what])[0] == 3


@pytest.mark.parametrize("what", [one for one in SETTINGS if one != "baseline to update"])  # that one is written
def test_a_name_too_long_is_no_setting(tmp_path: Path, what: str) -> None:
    bench = Bench(tmp_path, lambda _: None)
    bench.it = tmp_path / ("x" * 300)
    assert bench.run(SETTINGS[what])[0] == 2


@pytest.mark.parametrize("what", SETTINGS)
def test_a_folder_is_no_setting(tmp_path: Path, what: str) -> None:
    assert Bench(tmp_path, lambda path: path.mkdir()).run(SETTINGS[what])[0] == 2


@pytest.mark.parametrize("what", OUTPUTS)
@pytest.mark.parametrize("name", ["file/odd-one", "x" * 300], ids=["below a file", "too long"])
def test_what_cannot_be_written_ends_with_4(tmp_path: Path, what: str, name: str) -> None:
    bench = Bench(tmp_path, lambda _: None)
    (tmp_path / "file").touch()
    bench.it = tmp_path / name
    code, said = bench.run(OUTPUTS[what])
    assert code == 4, said


@pytest.mark.parametrize(
    "argv",
    [
        ["{gt}", "{pred}", "-o", ""],
        ["{gt}", ""],
        ["--gt", "", "--pred", "{pred}"],
        ["{gt}", "{pred}", "--images", ""],
        ["{gt}", "{pred}", "--config", ""],
        ["gate", ""],
        ["convert", "{gt}", ""],
        ["nms", "{pred}", "-o", ""],
    ],
    ids=" ".join,
)
def test_an_empty_path_is_a_mistake_in_the_call(tmp_path: Path, argv: list[str]) -> None:
    gt, pred = write_pair(tmp_path)
    done = run_here(*(word.format(gt=gt, pred=pred) for word in argv), cwd=tmp_path)
    assert done.returncode == 2
    assert "expected a path, got an empty text" in done.stderr


def test_an_array_that_claims_more_than_it_holds_is_damaged_and_no_lack_of_memory(tmp_path: Path) -> None:
    gt, _ = write_pair(tmp_path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**15, 4)})
    path = tmp_path / "pred.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("boxes.npy", header.getvalue())
    done = run_here(gt, path)
    assert done.returncode == 3
    assert f"error[npz-damaged]: {path}: boxes: cannot be read: its header claims the shape (1000000000000000, 4)" in (
        done.stderr
    )


DEEP = 3_000  # levels, three times what Python descends


def _nested(start: str, end: str) -> str:
    return start * DEEP + end * DEEP


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("jaccard-eval.toml", f"x = {_nested('[', ']')}"),
        ("jaccard-eval.toml", f"[{'a.' * DEEP}b]"),
        ("jaccard-eval.toml", "x = " + "9" * 5_000),  # more digits than Python makes a number of
        ("jaccard-eval.yaml", f"gates: {_nested('[', ']')}"),
        ("pyproject.toml", f"[tool]\njaccard-eval = {_nested('[', ']')}"),
    ],
    ids=["list", "table", "digits", "YAML", "pyproject"],
)
def test_a_configuration_nested_without_end_ends_with_2(tmp_path: Path, name: str, text: str) -> None:
    pair = write_pair(tmp_path)
    (tmp_path / name).write_text(text)
    done = run_here(*pair, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert name in done.stderr


@pytest.mark.parametrize("what", [one for one in SETTINGS if one not in ("groups", "list", "saved run as baseline")])
def test_a_setting_nested_without_end_ends_with_2(tmp_path: Path, what: str) -> None:
    texts = {
        "toml": f"[slices]\nx = {_nested('[', ']')}",
        "yaml": f"names: {_nested('[', ']')}",
        "json": '{"a":' * DEEP + "1" + "}" * DEEP,
        "txt": "",
    }
    code, said = Bench(tmp_path, lambda path: path.write_text(texts[path.suffix[1:]])).run(SETTINGS[what])
    assert code == 2, said


def test_a_saved_run_that_cannot_be_read_is_not_told_to_be_missing(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    result, run = tmp_path / "run.json", tmp_path / "run.npz"
    assert run_here(gt, pred, "-o", result).returncode == 0
    assert json.loads(result.read_text())["schema"] == 1
    run.symlink_to(run.name)
    gate = ["--fail-significant-drop", "AP=0.1", "--baseline", result, "--allow-missing-baseline"]
    for argv, code in (["compare", result, result], 3), ([gt, pred, *gate], 2):
        done = run_here(*argv)
        assert done.returncode == code
        assert f"{run}: is a symbolic link loop" in done.stderr
