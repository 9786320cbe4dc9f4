"""The fuzzer itself: the same seed gives the same cases, each fault that it looks for is found, a case shrinks."""

import random
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import fuzz
import pytest
from command_line import COMMANDS, run_here
from fuzz import Fuzzer, resource, run_for, shrink
from fuzz_cases import Case, Damage, Stock
from mutations import BY_SUFFIX, FILE_MUTATORS, mutate

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs limits and wait4")]

SOUND = "print('AP 0.5')"
REFUSED = "import sys; sys.stderr.write('error: no\\n'); sys.exit(3)"


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Fuzzer:
    folder = tmp_path_factory.mktemp("fuzz")
    return Fuzzer(0, folder, folder / "kept")


@pytest.fixture
def stock(fuzzer: Fuzzer) -> Stock:
    return fuzzer.stock


CASE = Case("0-0", ("evaluate", "coco/gt.json", "coco/better.json"), (), (), ())


def judged(fuzzer: Fuzzer, program: str, case: Case = CASE) -> list[str]:
    """Judge a program that does what its text says in the place of the project's."""
    fuzzer.program = (sys.executable, "-c", program)
    return fuzzer.judge(case)


def test_a_seed_and_a_number_give_one_case(stock: Stock) -> None:
    drawn = [stock.draw(seed, number) for seed in (1, 2) for number in range(50)]
    assert drawn == [stock.draw(seed, number) for seed in (1, 2) for number in range(50)]
    assert len({repr(replace(case, name="")) for case in drawn}) > 90


def test_every_command_and_every_format_is_drawn(stock: Stock) -> None:
    drawn = [stock.draw(3, number) for number in range(3_000)]
    assert {case.head[0] for case in drawn} == set(COMMANDS)
    words = {word.split("/")[0] for case in drawn for word in case.words}
    assert {name.split("/")[0] for name in stock.any} <= words


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_drawn_with_inputs_that_it_can_read(command: str, stock: Stock, tmp_path: Path) -> None:
    rng, ends = random.Random(5), []
    shutil.copytree(stock.folder, tmp_path / "in")
    while 0 not in ends and len(ends) < 200:
        ends.append(run_here(command, *stock.arguments(command, rng), cwd=tmp_path / "in").returncode)
    assert 0 in ends


def test_a_case_damages_its_files_in_the_same_way_again(stock: Stock, tmp_path: Path) -> None:
    case = replace(CASE, damages=tuple(Damage("coco/gt.json", seed) for seed in range(3)))
    contents = []
    for name in ("a", "b"):
        stock.prepare(case, tmp_path / name)
        path = tmp_path / name / "coco/gt.json"
        contents.append(path.read_bytes() if path.is_file() else path.is_dir())
    assert contents[0] == contents[1]
    assert contents[0] != (stock.folder / "coco/gt.json").read_bytes()


@pytest.mark.parametrize("suffix", sorted({*BY_SUFFIX} - {".yml", ".tsv"}))  # which are as .yaml and .csv
def test_every_mutator_of_content_changes_most_files(suffix: str, stock: Stock, tmp_path: Path) -> None:
    whole = next(path for path in sorted(stock.folder.rglob(f"*{suffix}")) if path.stat().st_size > 30).read_bytes()
    broken = []
    for seed in range(30):
        try:
            broken.append(BY_SUFFIX[suffix](whole, random.Random(seed)))
        except Exception:  # the content was not what the suffix says, which `mutate` makes up for
            broken.append(whole)
    assert sum(data != whole for data in broken) >= 20


@pytest.mark.parametrize("mutator", FILE_MUTATORS)
def test_every_mutator_of_files_changes_the_folder(mutator: object, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"1\n{name}\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    mutator(tmp_path / "a.txt", random.Random(5))  # type: ignore[operator]
    after = {path.name: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}
    assert after != before or (tmp_path / "a.txt").is_symlink() or (tmp_path / "sub").exists()


def test_a_damaged_file_can_be_damaged_again(tmp_path: Path) -> None:
    for seed in range(60):
        path = tmp_path / f"{seed}.json"
        path.write_text('{"images": [{"id": 1}], "annotations": []}')
        for again in range(4):
            mutate(path, random.Random(100 * seed + again))


@pytest.mark.parametrize("program", [SOUND, REFUSED])
def test_a_sound_end_has_no_fault(fuzzer: Fuzzer, program: str) -> None:
    assert judged(fuzzer, program) == []


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("import sys; sys.stderr.write('error: internal error: x\\n'); sys.exit(5)", "ended with 5"),
        ("raise ValueError('odd')", "internal error: ValueError: odd"),
        ("import os; os.abort()", "ended with -6"),
        ("import sys; sys.exit(2)", "no error message"),
        ("import sys; print('AP'); sys.stderr.write('error: no\\n'); sys.exit(3)", "standard output without a result"),
        ("import sys; sys.exit(1)", "a failed gate where none was asked for"),
        (
            "import sys; sys.stderr.write('error: \\x1b]0;x\\x07\\n'); sys.exit(3)",
            "active characters on standard error",
        ),
        ("open('coco/gt.json', 'a').write(' ')", "changed coco/gt.json"),
        ("import os; os.remove('coco/gt.json')", "changed coco/gt.json"),
        ("open('out/old.json', 'w'); import sys; sys.stderr.write('error: x\\n'); sys.exit(4)", "changed out/old.json"),
        ("open('stray', 'w')", "left stray, which was not asked for"),
        ("open('out/.jaccard-eval-x', 'w')", "left a temporary file"),
        ("x = bytearray(PEAK + (700 << 20))", "took more than 600 MB"),
        (
            "import sys; sys.stderr.write('a.py:3: RuntimeWarning: x\\n')",
            "a library's warning: a.py:3: RuntimeWarning: x",
        ),
        ("import sys; sys.stderr.write('note: x\\n' * 9000)", "more than 20000 characters on standard error"),
        ("print('{\"AP\": NaN}')", "standard output: invalid JSON: NaN"),
    ],
)
def test_each_fault_is_found(fuzzer: Fuzzer, program: str, fault: str) -> None:
    # What a process takes can be told where it is more than its parent ever had.
    program = program.replace("PEAK", str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))
    assert fault in judged(fuzzer, program, replace(CASE, options=(("--json",),)))


def test_what_takes_too_long_is_ended(fuzzer: Fuzzer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "CPU_SECONDS", 1)
    assert "took more than 1 s" in judged(fuzzer, "while True: pass")


def test_an_output_that_is_no_document_is_found(fuzzer: Fuzzer) -> None:
    case = replace(CASE, options=(("-o", "out/new.xml"),))
    (fault,) = judged(fuzzer, "open('out/new.xml', 'w').write('<a>')", case)
    assert fault.startswith("new.xml: invalid XML")


def test_a_failing_case_is_shrunk_to_what_fails_and_kept(fuzzer: Fuzzer, capsys: pytest.CaptureFixture[str]) -> None:
    """The planted program fails on one word only."""
    program = "import sys; sys.exit(5 if '--strict' in sys.argv else 0)"
    fuzzer.program = (sys.executable, "-c", program)
    options = (("--iou", "0.5"), ("--strict",), ("--json",))
    case = replace(CASE, options=options, damages=(Damage("coco/gt.json", 1),), environment=(("CI", "true"),))
    assert shrink(case, fuzzer.judge(case), fuzzer.judge) == replace(CASE, options=(("--strict",),))
    number = next(i for i in range(10_000) if "--strict" in fuzzer.stock.draw(0, i).words)
    assert fuzzer.check(number)
    said = capsys.readouterr().out
    assert f"--seed 0 --case {number}" in said
    assert (fuzzer.kept / f"0-{number}/inputs").is_dir()
    assert "ended with 5" in (fuzzer.kept / f"0-{number}/report.txt").read_text()


def test_a_run_counts_its_cases_and_prints_its_seed(fuzzer: Fuzzer, capsys: pytest.CaptureFixture[str]) -> None:
    fuzzer.program = (sys.executable, "-c", SOUND)
    assert run_for(fuzzer, seconds=1.0, jobs=2) == 0
    assert capsys.readouterr().out.startswith("fuzz: seed 0, ")
