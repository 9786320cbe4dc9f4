"""The one door to scale-out: who names what is behind it, and that a run without any of it passes nothing there."""

import re
import subprocess
import sys
from pathlib import Path

import jaccard_eval

PACKAGE = Path(jaccard_eval.__file__).parent
SAMPLE = PACKAGE.parent / "sample_data"
BEHIND = re.compile(r"(engine/(?!__init__|places|threads|memory)|storage\.py|reading/stored|reading/partitions).*")
# Who puts boxes on the disk, or reads or writes a folder of parts; everybody else goes by `Place` and `Boxes`.
MAY_NAME = {"formats/__init__.py", "reading/stored.py", "reading/partitions.py", "features/partition.py"}
PROFILER = """
import sys, threading
package, *arguments = sys.argv[1:]
passed = set()

def profile(frame, event, argument):
    code = frame.f_code
    # Bodies of modules and classes run where a module is loaded, which another test is about.
    if event == "call" and code.co_filename.startswith(package) and code.co_flags & 2 and code.co_name != "<module>":
        passed.add(f"{code.co_filename.removeprefix(package)[1:]} {code.co_qualname}")

sys.argv = ["jaccard-eval", *arguments]
threading.setprofile(profile)
sys.setprofile(profile)
try:
    from jaccard_eval.__main__ import main
    main()
except SystemExit as end:
    assert not end.code, end.code
sys.setprofile(None)
print(*sorted(passed), sep="\\n", file=sys.stderr)
"""


def passed_by(*arguments: str) -> list[str]:
    """Return what functions of the package a run of the command line passes, each after its module."""
    command = [sys.executable, "-c", PROFILER, str(PACKAGE), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    return [line for line in done.stderr.splitlines() if ".py " in line]


def test_a_run_in_memory_passes_nothing_behind_the_door() -> None:
    passed = passed_by(str(SAMPLE / "coco/gt.json"), str(SAMPLE / "coco/better.json"))
    assert len(passed) > 300
    assert not [name for name in passed if BEHIND.fullmatch(name)]


def test_a_run_on_the_disk_passes_what_is_behind_it() -> None:
    passed = passed_by(str(SAMPLE / "coco/gt.json"), str(SAMPLE / "coco/better.json"), "--engine", "disk")
    assert {"engine/stored.py", "reading/stored.py"} <= {name.split()[0] for name in passed if BEHIND.fullmatch(name)}


def test_few_modules_name_what_is_behind_the_door() -> None:
    naming = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\b(is_partitioned|StoredBoxes|RemotePath)\b|\bremote\.", path.read_text(encoding="utf-8"))
        and path.parent.name != "engine"
    }
    assert naming <= MAY_NAME
