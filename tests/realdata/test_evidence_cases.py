"""Inputs of strangers whose right numbers are known: either that number, or a stop that leads to it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from jaccard_eval.cli.run import run


@dataclass(frozen=True)
class Case:
    """A command on files below the folder of cases, and what it must end with."""

    command: str
    code: int = 0
    value: str = ""  # as the last line of stdout begins
    said: str = ""  # somewhere on stdout or stderr
    unsaid: str = ""


CASES = {
    "poses without areas": Case(
        "area_zero_poses/gt.json area_zero_poses/dt.json --iou-type keypoints", value="AP 1.0000", said="area-missing"
    ),
    "a binary mask": Case("pixels r24_binary/gt r24_binary/pred", value="mIoU 0.8757", unsaid="--ignore"),
    "another binary mask": Case("pixels binary_0_255/gt binary_0_255/pred", value="mIoU 0.8123", unsaid="--ignore"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_strangers_files_give_the_right_number_or_stop(
    name: str, shared_cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    argv = [str(shared_cases / word) if "/" in word or "." in word[1:-3] else word for word in case.command.split()]
    code = run(argv)
    out, err = capsys.readouterr()
    assert code == case.code, err
    assert out.rstrip().rpartition("\n")[2].startswith(case.value)
    assert case.said in out + err
    assert not case.unsaid or case.unsaid not in out + err
