"""The compiled core under the sanitizers of its compiler: damaged texts lead to no access beyond what is given."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jaccard_eval import native

SOURCE = native.LIBRARY.with_name("core.cpp")
COMPILER = shutil.which("g++")
# Damages results lists in every place, in a process whose allocations the sanitizer knows.
PROGRAM = """
import ctypes, random, sys
from pathlib import Path
from jaccard_eval import native
from jaccard_eval.native.results import scan_results

native.LIBRARY = Path(sys.argv[1])
assert native.load_core() is not None
rng = random.Random(7)

def scan(text):
    # A buffer that ends where the text does: bytes have a 0 behind them.
    return scan_results(ctypes.create_string_buffer(text, len(text)) if text else text)

texts = [Path(path).read_bytes() for path in sys.argv[2:]]
texts = [text for text in texts if text.startswith(b"[")]
assert texts
assert any(scan(text) is not None for text in texts)
for text in texts:
    for end in range(min(len(text), 600)):
        scan(text[:end])
    for _ in range(1000):
        place, n = rng.randrange(len(text)), rng.choice((0, 1, 1, 30))
        filler = bytes(rng.choices(b'"{}[],:.-+eE019 \\n\\\\\\0\\x80', k=rng.choice((0, 1, 1, 40))))
        scan(text[:place] + filler + text[place + n :])
print("done", len(texts))
"""


def runtime(name: str) -> str:
    """Return the path of a library of the compiler."""
    return subprocess.run(
        [str(COMPILER), f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None or sys.platform != "linux", reason="needs g++ on Linux")
def test_damaged_texts_are_read_without_a_fault(tmp_path: Path) -> None:
    library = tmp_path / "core.so"
    flags = ["-std=c++17", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-shared", "-fPIC"]
    subprocess.run([str(COMPILER), *flags, str(SOURCE), "-o", str(library)], check=True)
    root = Path(__file__).parents[2]
    corpus = sorted((root / "sample_data").rglob("*.json")) + sorted((root.parent / "shared" / "data").rglob("*.json"))
    small = [str(path) for path in corpus if path.stat().st_size < 50_000]
    preloaded = os.pathsep.join(map(runtime, ("libasan.so", "libubsan.so", "libstdc++.so")))
    environment = {
        "LD_PRELOAD": preloaded,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python frees little at its end
        "PYTHONMALLOC": "malloc",  # or the sanitizer would not know where a text ends
        native.VARIABLE: "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(library), *small],
        check=False,
        cwd=root,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("done")
