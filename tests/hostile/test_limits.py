"""Inputs that want too much: depth, length, unpacked size, number of files, and files that never end."""

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import box, command, environment, write_json, write_pair

from jaccard_eval.cli import run
from jaccard_eval.formats import read_dataset
from jaccard_eval.options import ReadOptions

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="POSIX limits, pipes and devices")]

GIGABYTE = 1 << 30
DEPTH = 100_000
LONG = 10_000_000  # characters
MAX_SAID = 20_000  # characters on standard error, whatever the input
LINE = "0 0.5 0.5 0.2 0.2\n"

Damage = Callable[[Path], list[str | Path]]  # from a folder with a good pair to the arguments of a hostile one


def run_limited(
    *argv: str | Path, seconds: float = 20.0, memory: int = GIGABYTE, files: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line with bounds on its address space, its open files and its time."""
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    env = environment({"OPENBLAS_NUM_THREADS": "1"})
    return subprocess.run(
        command(*argv), env=env, capture_output=True, text=True, check=False, timeout=seconds, preexec_fn=limit
    )


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_truth(folder: Path, name: str = "dog", **annotation: object) -> Path:
    content = {
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "annotations": [box(1, 1, [0, 0, 10, 10]) | {"id": 1, "area": 100, "iscrowd": 0} | annotation],
        "categories": [{"id": 1, "name": name}],
    }
    return write_json(folder / "gt.json", content)


def nested(marks: str, place: str) -> Damage:
    """Return what replaces an input by brackets in brackets."""

    def replace(folder: Path) -> list[str | Path]:
        gt, pred = write_pair(folder)
        bomb = write(folder / place, marks * DEPTH)
        labels = write(folder / "labels/a.txt", LINE).parent
        return {
            "gt.json": [gt, pred],
            "pred.json": [gt, pred],
            "names.json": [labels, labels, "--names", bomb],
            "data.yaml": [labels, labels, "--names", bomb],
            "map.json": [gt, pred, "--class-map", bomb],
            "gt.csv": [bomb, pred, "--gt-format", "csv"],
        }[place]

    return replace


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (nested("[", "gt.json"), 3),
        (nested('{"images":', "gt.json"), 3),
        (nested("[", "pred.json"), 3),
        (nested('[{"image_id":', "pred.json"), 3),
        (nested("[", "names.json"), 2),
        (nested("names: [", "data.yaml"), 2),
        (nested("[", "data.yaml"), 2),
        (nested("- ", "data.yaml"), 2),
        (nested("{", "map.json"), 2),
        (nested('{"a":', "map.json"), 2),
        (nested("[", "gt.csv"), 3),
    ],
)
def test_a_hundred_thousand_nested_brackets_are_refused(damage: Damage, code: int, tmp_path: Path) -> None:
    done = run_limited(*damage(tmp_path), seconds=10)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr[-2000:]
    assert done.stderr.startswith("error[")
    assert len(done.stderr) < MAX_SAID


@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ("gt.json", '{{"images": [], "{long}": 1}}', 3),
        ("gt.json", '{{"images": [{{"id": {digits}}}], "annotations": [], "categories": []}}', 3),
        ("gt.json", '{{"images": [{{"id": "{long}"}}], "annotations": [], "categories": []}}', 3),
        ("gt.json", '["{long}"]', 3),
        ("gt.json", "{long}", 3),
        ("gt.csv", "image,class,xmin,ymin,xmax,ymax\na,dog,{digits},2,3,4\n", 3),
        ("gt.csv", "image,class,xmin,ymin,xmax,ymax\na,dog,1{long},2,3,4\n", 3),
        ("gt.csv", 'image,class,xmin,ymin,xmax,ymax\na,dog,"{long},2,3,4\n', 3),
        ("gt.csv", "image,class,{long}\na,dog,1\n", 3),
        ("gt.csv", "{commas}\n", 3),
        ("labels/a.txt", "0 0.5 0.5 0.2 {digits}\n", 3),
        ("labels/a.txt", "0 0.5 0.5 0.2 0.2\n{long} 1 2\n", 3),
        ("data.yaml", "names: [{long}", 3),
        ("data.yaml", "{long}: 1\nnames: {{}}\n", 3),
    ],
)
def test_a_field_of_ten_million_characters_is_reported_in_a_few(
    file: str, content: str, code: int, tmp_path: Path
) -> None:
    text = content.format(long="x" * LONG, digits="1" * LONG, commas="," * (LONG // 10))
    path = write(tmp_path / file, text)
    path = path.parent if path.suffix == ".txt" else path
    pred = write_json(tmp_path / "pred.json", [])
    done = run_limited(path, pred)
    assert done.returncode == code, done.stderr[-2000:]
    assert len(done.stderr) + len(done.stdout) < MAX_SAID


def test_a_class_name_of_a_million_characters_is_a_class_name(tmp_path: Path) -> None:
    name = "x" * 1_000_000
    pred = write_json(tmp_path / "pred.json", [box(1, 1, [0, 0, 10, 10], score=0.5)])
    done = run_limited(write_truth(tmp_path, name=name), pred, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["per_class"][0]["class"] == name
    assert len(done.stderr) < MAX_SAID


@pytest.fixture(scope="module")
def gzip_bomb() -> bytes:
    return gzip.compress(b" " * 300_000_000, compresslevel=1)


@pytest.mark.parametrize("side", ["gt", "pred"])
def test_a_gzip_bomb_is_refused_before_it_is_unpacked(side: str, gzip_bomb: bytes, tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    write(gt if side == "gt" else pred, gzip_bomb)
    done = run_limited(gt, pred, memory=GIGABYTE // 2)
    assert done.returncode == 3, done.stderr
    assert "too large" in done.stderr


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    names = write(tmp_path / "data.yaml", "\n".join(["a0: &a0 [lol]", *levels, "names: *a9", ""]))
    labels = write(tmp_path / "labels/a.txt", LINE).parent
    done = run_limited(labels, labels, "--names", names, "--assume-score", "1", memory=GIGABYTE // 2)
    assert done.returncode == 2
    assert "aliases" in done.stderr


def test_reading_takes_time_in_proportion_to_the_number_of_label_files(tmp_path: Path) -> None:
    seconds = {}
    for n in (2_000, 8_000):
        folder = tmp_path / str(n)
        folder.mkdir()
        for i in range(n):
            (folder / f"{i}.txt").write_text(LINE)
        start = time.process_time()  # other processes of the machine count for nothing
        assert len(read_dataset(folder, ReadOptions()).boxes) == n
        seconds[n] = time.process_time() - start
    assert seconds[8_000] < 4 * 3 * seconds[2_000] + 1  # four times as much; what is quadratic takes sixteen times


def test_two_thousand_label_files_need_few_open_at_once(tmp_path: Path) -> None:
    for i in range(2_000):
        write(tmp_path / f"gt/{i}.txt", LINE)
        write(tmp_path / f"pred/{i}.txt", LINE.replace("\n", " 0.9\n"))
    done = run_limited(tmp_path / "gt", tmp_path / "pred", "--json", files=24)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["inputs"]["gt"]["images"] == 2_000


OF_A_PAIR: dict[str, list[str]] = {  # options that name a file, and what they are given with
    "--class-map": [],
    "--config": [],
    "--slices": [],
    "--baseline": ["--fail-drop", "AP=0.1"],
    "--metrics-file": ["--fail-under", "external.speed=1"],
    "--group-by": ["--bootstrap", "10"],
}


def endless(folder: Path, kind: str) -> Path:
    """Return a path that a reader could wait for, or read from, for ever."""
    if kind == "fifo":
        os.mkfifo(folder / "endless.json")
        return folder / "endless.json"
    return Path("/dev/zero")


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero"])
@pytest.mark.parametrize("place", ["gt", "pred", "--names", "--images", "label file", "picture", *OF_A_PAIR])
def test_what_never_ends_is_refused_within_a_second(
    kind: str, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = endless(tmp_path, kind)
    gt, pred = write_pair(tmp_path)
    labels = write(tmp_path / "labels/b.txt", LINE).parent
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / ("a.png" if place == "picture" else "a.txt")
    link.symlink_to(path)
    argv: list[str | Path] = {
        "gt": [path, pred],
        "pred": [gt, path],
        "--names": [labels, labels, "--names", path],
        "--images": [labels, labels, "--images", path],
        "label file": [link.parent, labels, "--gt-format", "yolo"],
        "picture": [write(tmp_path / "one/a.txt", LINE).parent, labels, "--images", link.parent],
    }.get(place, [gt, pred, place, path])
    start = time.monotonic()
    code = run.run(["evaluate", *map(str, argv), *OF_A_PAIR.get(place, ())])
    assert time.monotonic() - start < 20  # nobody writes to it: it would be waited for for ever
    shown = capsys.readouterr()
    sets_up = place == "--names" or place in OF_A_PAIR  # rather than being measured
    assert (code, shown.out) == (2 if sets_up else 3, "")


def test_a_home_and_a_temporary_folder_that_do_not_exist_are_not_missed(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    places = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR")
    (tmp_path / "cwd").mkdir()
    done = subprocess.run(
        command(gt, pred, "-o", tmp_path / "out.json"),
        env=environment(dict.fromkeys(places, str(tmp_path / "nowhere"))),
        cwd=tmp_path / "cwd",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["cwd", "gt.json", "out.json", "pred.json"]


WATCH = """
ACTIVE_MODULES = ("socket", "subprocess", "shutil", "pickle", "webbrowser", "ctypes", "urllib")
ACTS = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.remove", "os.rename", "os.mkdir", "os.symlink")
import json, os, sys
import jaccard_eval
from jaccard_eval.cli import run

argv = json.loads(sys.argv[1])
run.run(argv)  # everything that is imported late is imported now
own = (os.path.dirname(jaccard_eval.__file__), os.devnull)
opened, acts, listening = [], [], True

def listen(event, given):
    if listening and event in ("open", "os.listdir", "os.scandir") and not isinstance(given[0], int):
        opened.append(os.fspath(given[0]))
    elif listening and (event.split(".")[0] in ACTIVE_MODULES or event in ACTS):
        acts.append(event)

sys.addaudithook(listen)
code = run.run(argv)
listening = False
seen = {"opened": [path for path in opened if not path.startswith(own)], "acts": acts}
sys.stderr.write("\\n" + json.dumps(seen))
sys.exit(code)
"""
SECRET = "a well-kept secret"


@pytest.fixture
def hostile_paths(tmp_path: Path) -> tuple[str, ...]:
    """Names that lead to a file outside of every input, or to another machine."""
    write(tmp_path / "secret.txt", f"{SECRET}\n")
    write(tmp_path / "secret.png", SECRET)
    outside = (
        "../secret.png",
        "../../secret.png",
        "..\\secret.png",
        f"{tmp_path}/secret.png",
        f"file://{tmp_path}/secret.png",
    )
    return (
        *outside,
        "http://169.254.169.254/secret.png",
        "\\\\host\\share\\secret.png",
        "/etc/passwd",
        "a\0b.png",
        "|id",
        "$(id)",
    )


def require_nothing_outside(done: subprocess.CompletedProcess[str], inputs: Path) -> None:
    """No file was opened but below `inputs`; nothing was executed, sent or removed; the secret was not told."""
    seen = json.loads(done.stderr.splitlines()[-1])
    assert seen["opened"]
    assert [path for path in seen["opened"] if not path.startswith(str(inputs))] == []
    assert seen["acts"] == []
    assert SECRET not in done.stdout + done.stderr


def watch(*argv: str | Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", WATCH, json.dumps(["evaluate", "--isolated", *map(str, argv)])]
    return subprocess.run(program, env=environment(), capture_output=True, text=True, check=False, timeout=60)


def test_file_names_in_coco_json_are_never_opened(tmp_path: Path, hostile_paths: tuple[str, ...]) -> None:
    inputs = tmp_path / "in"
    images = [{"id": i, "file_name": name} for i, name in enumerate(hostile_paths)]
    boxes = [box(i, 1, [0, 0, 10, 10]) | {"id": i, "area": 100, "iscrowd": 0} for i in range(len(images))]
    gt = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "dog"}]}
    pred = [box(i, 1, [0, 0, 10, 10], score=0.5) for i in range(len(images))]
    (inputs / "images").mkdir(parents=True)
    argv = [write_json(inputs / "gt.json", gt), write_json(inputs / "pred.json", pred)]
    done = watch(*argv, "--images", inputs / "images", "--per-class")
    assert done.returncode == 0, done.stderr
    require_nothing_outside(done, inputs)


def test_image_names_in_a_table_are_never_opened(tmp_path: Path, hostile_paths: tuple[str, ...]) -> None:
    inputs = tmp_path / "in"
    rows = [f'"{name}",dog,0.1,0.1,0.2,0.2' for name in hostile_paths if "\0" not in name]
    gt = write(inputs / "gt.csv", "\n".join(["image,class,xmin,ymin,xmax,ymax", *rows, ""]))
    pred = write(
        inputs / "pred.csv", "\n".join(["image,class,xmin,ymin,xmax,ymax,score", *(f"{row},0.5" for row in rows), ""])
    )
    (inputs / "images").mkdir()
    done = watch(gt, pred, "--images", inputs / "images")
    assert done.returncode == 0, done.stderr
    require_nothing_outside(done, inputs)


@pytest.mark.parametrize("description", ["data.yaml", "obj.data"])
def test_lists_in_a_data_set_do_not_lead_out_of_it(
    description: str, tmp_path: Path, hostile_paths: tuple[str, ...]
) -> None:
    inputs = tmp_path / "in"
    write(inputs / "list.txt", "\n".join(name.replace(".png", ".jpg") for name in hostile_paths if "\0" not in name))
    write(inputs / "data.yaml", "val: list.txt\nnames: [dog]\n")
    write(inputs / "obj.data", f"valid = list.txt\nnames = {tmp_path}/secret.txt\n")
    done = watch(inputs / description, write(inputs / "pred/a.txt", LINE).parent, "--assume-score", "1")
    assert done.returncode == 3, done.stderr
    require_nothing_outside(done, inputs)
