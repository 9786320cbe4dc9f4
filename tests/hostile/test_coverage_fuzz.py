"""The targets of the coverage-guided fuzzer, without it: their seeds, damaged, and what it found."""

import random
from collections.abc import Callable
from pathlib import Path

import coverage_fuzz
import pytest
from coverage_fuzz import SEEDS, TARGETS
from damage import EDITS, damage

pytestmark = pytest.mark.slow

N_MUTANTS = 20  # of each seed


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_fuzz, "scratch", lambda: tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_reads_its_seeds_and_what_damage_makes_of_them(name: str) -> None:
    target, rng = TARGETS[name](), random.Random(name)
    for seed in SEEDS[name]:
        target(seed)
        for _ in range(N_MUTANTS):
            target(seed[:1] + damage(seed[1:], rng, EDITS))


@pytest.mark.parametrize(("name", "data"), [("options", b"\x09class=\r,score=b"), ("options", b"\x080\x1c")])
def test_what_was_found_stays_fixed(name: str, data: bytes) -> None:
    TARGETS[name]()(data)


def test_a_target_lets_an_unexpected_exception_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse_iou(text: str) -> Callable[[], None]:
        raise KeyError(text)

    monkeypatch.setattr("jaccard_eval.cli.parse.parse_iou", parse_iou)
    with pytest.raises(KeyError):
        TARGETS["options"]()(b"\x000.5")
