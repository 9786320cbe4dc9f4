"""What every command prints and writes is what it was: a line of digests for each case in `outputs.json`.

`pytest tests/golden --update-golden` writes the lines again, and the screens, for a change that is meant.
"""

import difflib
import hashlib
import json
import re
import shlex
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from command_line import run_here
from golden_cases import CASES, MADE, REAL, ROUNDED, SCREENS
from PIL import Image

from jaccard_eval import __version__

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MANIFEST = HERE / "outputs.json"
SHOWN = ROOT / "build" / "golden"  # what is printed and written now, of cases that changed
DRAWN_BY = {  # what the bytes of these files hang on besides; another version is not compared
    ".svg": "matplotlib", ".png": "matplotlib", ".parquet": "pyarrow", ".arrow": "pyarrow", ".feather": "pyarrow",
}  # fmt: skip
LENGTH = 16  # hexadecimal digits of a digest

ADVICE = """{line}
changed: {changed}
now: {shown}
before: git worktree add ../before $(git log -1 --format=%h -- tests/golden/outputs.json), and there
    PYTHONPATH=. pytest tests/golden --update-golden
which writes all of them into ../before/build/golden. Where the change is meant: pytest tests/golden --update-golden
{difference}"""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results that some of the cases start from."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "sample_data").symlink_to(ROOT / "sample_data")
    (folder / "made").mkdir()
    for line in MADE:
        assert run(line, folder)["exit"] == b"0"
    return folder / "made"


@pytest.mark.parametrize("line", [*CASES, *REAL])
def test_a_command_prints_and_writes_what_it_did(
    line: str, made: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    links = {"sample_data": ROOT / "sample_data", "saved": HERE / "given", "made": made}
    if line in REAL:
        links["data"] = request.getfixturevalue("shared_data")
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    parts = run(line, tmp_path)
    found, screen = digests(line, parts), screen_of(line, parts)
    for path in (tmp_path / name for name in links):
        path.unlink()
    if request.config.getoption("--update-golden"):
        show(line, parts, tmp_path)
        write_manifest({**read_manifest(), line: found})
        if line in SCREENS:
            (HERE / "screens" / SCREENS[line]).write_text(screen, encoding="utf-8")
        return
    known = read_manifest().get(line, {})
    changed = sorted(name for name in known.keys() | found.keys() if differs(known.get(name), found.get(name)))
    if changed:
        shown, difference = show(line, parts, tmp_path), ""
        if line in SCREENS:
            former = (HERE / "screens" / SCREENS[line]).read_text(encoding="utf-8")
            difference = "\n".join(difflib.unified_diff(former.splitlines(), screen.splitlines(), lineterm=""))
        pytest.fail(
            ADVICE.format(line=line, changed=", ".join(changed), shown=shown, difference=difference), pytrace=False
        )


def test_there_is_a_line_for_each_case_and_no_other(request: pytest.FixtureRequest) -> None:
    lines = read_manifest()
    assert len({*CASES, *REAL}) == len([*CASES, *REAL])
    if request.config.getoption("--update-golden"):
        write_manifest({line: found for line, found in lines.items() if line in {*CASES, *REAL}})
    else:
        assert lines.keys() == {*CASES, *REAL}
        assert {path.name for path in (HERE / "screens").iterdir()} == {*SCREENS.values()}


def test_no_digest_hangs_on_where_or_by_which_version_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(f'{{"version": "{__version__}", "path": "{tmp_path}/gt.json"}}')
    assert canonical(path, tmp_path) == b'{"version": "VERSION", "path": "FOLDER/gt.json"}'


def run(line: str, folder: Path) -> dict[str, bytes]:
    """Run a case, and return all that it printed and wrote, freed of what hangs on the machine and the version."""
    ci = {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "output.txt"}
    done = run_here(*shlex.split(line), env={"COLUMNS": "80", **ci}, cwd=folder)
    parts = {"exit": str(int(done.returncode)).encode()}
    parts |= {name: freed(getattr(done, name).encode(), folder) for name in ("stdout", "stderr")}
    # On a busy machine a stage takes so long that it is reported.
    parts["stderr"] = re.sub(rb"(?m)^\w[\w ]* took [\d.]+ s\n", b"", parts["stderr"])
    written = sorted(path for path in folder.iterdir() if not path.is_symlink() and path.name != "made")
    parts |= {path.name: canonical(path, folder) for path in written}
    return {name: rounded(content) for name, content in parts.items()} if line in ROUNDED else parts


def canonical(path: Path, folder: Path) -> bytes:
    """Return what counts of a file or folder: the arrays of an archive, the pixels of a picture, else its bytes."""
    if path.is_dir():
        inside = sorted(one for one in path.rglob("*") if one.is_file())
        return b"".join(f"{one.relative_to(path).as_posix()}\n".encode() + canonical(one, folder) for one in inside)
    if path.suffix == ".npz":
        return _arrays(path, folder)
    if path.suffix == ".png":
        with Image.open(path) as image:
            return f"{image.mode} {image.size}\n".encode() + image.tobytes()
    return freed(path.read_bytes(), folder)


def _arrays(path: Path, folder: Path) -> bytes:
    lines = []
    with np.load(path) as archive:
        for name, array in sorted(archive.items()):
            content = freed(array.tobytes(), folder)  # one of the arrays is a document
            shape = array.shape if content == array.tobytes() else "text"
            lines.append(f"{name} {array.dtype.str} {shape} {digest(content)}\n")
    return "".join(lines).encode()


def freed(content: bytes, folder: Path) -> bytes:
    """Replace the version and the folder; the heading of a text breaks where the version is long, and is joined."""
    if content.startswith(b"jaccard-eval "):
        heading, end, rest = content.partition(b"\n\n")
        content = heading.replace(b"\n", b" ") + end + rest
    return content.replace(__version__.encode(), b"VERSION").replace(str(folder).encode(), b"FOLDER")


def rounded(content: bytes) -> bytes:
    short = re.sub(rb"-?\d+\.\d{9,}(e-?\d+)?", lambda found: b"%.9f" % float(found[0]), content)
    return re.sub(rb'"digest": "sha256:[0-9a-f]{64}"', b'"digest": "ROUNDED"', short)  # it is that of all digits


def digests(line: str, parts: Mapping[str, bytes]) -> dict[str, str]:
    """Return the digest of each part, behind the library and version that it hangs on."""
    found = {"exit": parts["exit"].decode()}
    for name, content in parts.items():
        library = "click" if line.endswith("--help") else DRAWN_BY.get(Path(name).suffix)
        if name != "exit" and content:
            found[name] = f"{library} {version(library)} {digest(content)}" if library else digest(content)
    return found


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:LENGTH]


def differs(known: str | None, found: str | None) -> bool:
    """Whether two digests of a part differ, of those that can be compared."""
    if known is None or found is None:
        return True
    return known != found and known.split()[:-1] == found.split()[:-1]


def show(line: str, parts: Mapping[str, bytes], folder: Path) -> Path:
    """Write what a case printed and wrote to where it can be looked at."""
    target = SHOWN / f"{re.sub(r'[^A-Za-z0-9.]+', '-', line)[:80]}-{digest(line.encode())[:6]}"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    for name in ("stdout", "stderr"):
        (target / f"{name}.txt").write_bytes(parts[name])
    return target.relative_to(ROOT)


def screen_of(line: str, parts: Mapping[str, bytes]) -> str:
    """Return what a terminal would show."""
    return f"$ jaccard-eval {line}\n" + "".join(parts[name].decode() for name in ("stderr", "stdout"))


def read_manifest() -> dict[str, dict[str, str]]:
    return dict(json.loads(MANIFEST.read_text(encoding="utf-8"))) if MANIFEST.exists() else {}


def write_manifest(lines: Mapping[str, Mapping[str, str]]) -> None:
    """Write one line for each case, sorted."""
    rows = [f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(lines[key])}" for key in sorted(lines)]
    MANIFEST.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
