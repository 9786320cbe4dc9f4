"""The whole command on damaged inputs, in this process: an exit code of its own, one document or none, no traceback."""

import json
import random
import shutil
import time
from pathlib import Path

import damage
import pytest
from fuzz import COLORS
from inertness import active_characters

from jaccard_eval.cli import run

pytestmark = pytest.mark.slow

N_MUTANTS = 120  # of each pair
SECONDS = 4.0
SECONDS_EACH = 15.0  # of processor time; `compare` resamples 1,000 times, in 5 on a slow machine
SHARE_OF_OTHERS = 0.3

PAIRS = {  # of the sample: ground truth, predictions, and the files that are damaged
    "coco": ("coco/gt.json", "coco/worse.json", "coco/*.json"),
    "csv": ("csv/gt.csv", "csv/better.csv", "csv/*.csv"),
    "yolo": ("yolo/labels", "yolo/worse", "yolo/**/*.txt"),
    "yolo-yaml": ("yolo/data.yaml", "coco/better.json", "yolo/**/*.yaml"),
    "csv-coco": ("csv/gt.csv", "coco/better.json", "c*/*.*"),
    "pictures": ("yolo/labels/val", "yolo/worse", "yolo/images/val/*.png"),
}
OTHER_COMMANDS = ("inspect", "sensitivity", "compare", "labels")
OPTIONS = (  # of evaluate
    *([], [], ["--json"], ["--json"], ["--json"], ["--json", "--per-class"], ["--color", "always", "--per-class"]),
    *(["--protocol", "voc2007"], ["--score", "best-f1"], ["--class-agnostic"], ["--max-dets", "none"], ["--strict"]),
    *(["--extra-images", "ignore"], ["--match-images", "stem"], ["--assume-score", "1"], ["--names", "cat,dog"]),
    *(
        ["--gt-box", "xyxy"],
        ["--pred-box", "cxcywh"],
        ["--gt-units", "px"],
        ["--pred-units", "norm"],
        ["--gt-origin", "1"],
        ["--pred-resized", "letterbox:640"],
    ),
    *(["--pred-columns", "conf-box"], ["--names", "{sample}/yolo/data.yaml"], ["--classes", "dog"], ["--errors"]),
    *([["--images", "{sample}/yolo/images"]] * 4),
)


@pytest.fixture(scope="module")
def sample(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(sample_data, tmp_path_factory.mktemp("sample") / "sample"))


@pytest.mark.parametrize("pair", PAIRS)
def test_damaged_inputs_end_with_a_result_or_an_explanation(
    pair: str, sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(pair)
    gt, pred, pattern = PAIRS[pair]
    files = sorted(sample.glob(pattern))
    pictures = ["--images", "{sample}/yolo/images/val"] if pair == "pictures" else []
    end = time.monotonic() + SECONDS
    for _ in range(N_MUTANTS):
        options = [*pictures, *(word for words in rng.sample(OPTIONS, 2) for word in words)]
        argv = ["evaluate", str(sample / gt), str(sample / pred), *(word.format(sample=sample) for word in options)]
        if rng.random() < SHARE_OF_OTHERS:
            command = rng.choice(OTHER_COMMANDS)
            argv = [command, *argv[1:3], *(argv[2:3] if command == "compare" else []), "--json"]
        with damage.damaged(rng.choice(files), rng):
            require_result_or_explanation(argv, capsys)
        if time.monotonic() > end:
            break


def require_result_or_explanation(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    start = time.process_time()
    code = run.run(argv)
    seconds = time.process_time() - start
    shown = capsys.readouterr()
    assert code in (0, 2, 3), f"{argv}\n{shown.err}"
    assert "Traceback" not in shown.err
    told = COLORS.sub("", shown.err)  # our own colours, of --color always, are meant
    assert not active_characters(told)
    if shown.out and "--json" in argv:
        assert json.loads(shown.out, parse_constant=refuse)["schema"] == 1
    if code != 0:
        assert told.startswith(("error", "warning"))
        assert shown.out == "" or argv[0] == "inspect"  # which shows what could be read
    assert seconds < SECONDS_EACH, argv


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")
