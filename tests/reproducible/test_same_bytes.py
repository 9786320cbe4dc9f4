"""The same input gives the same bytes: on any machine, in any order of rows, under any settings of the system."""

import json
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import box, run_here, run_process, write_json
from shuffled import FORMATS, SIDES, copy_sample, shuffle_sample

from jaccard_eval import pixels
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.json_ import render

pytestmark = pytest.mark.slow

ENVIRONMENTS = (
    {"PYTHONHASHSEED": "0"},
    {"PYTHONHASHSEED": "4242"},
    {"LC_ALL": "C"},
    {"LC_ALL": "C.UTF-8"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"TZ": "Pacific/Kiritimati"},
    {"TZ": "America/St_Johns"},
    {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4", "MKL_NUM_THREADS": "4"},
    {"PYTHONOPTIMIZE": "2", "HOME": "/nowhere", "TMPDIR": "/nowhere"},
    {"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX", "PYTHONWARNINGS": "ignore"},
)
OPTIONS = ("--per-class", "--score", "best-f1", "--nms", "0.9")
SEEDS = (1, 2, 3)


@pytest.fixture
def sample(sample_data: Path, tmp_path: Path) -> Path:
    return copy_sample(sample_data, tmp_path)


def outputs(folder: Path, format_name: str, *options: str, env: dict[str, str] | None = None) -> dict[str, str]:
    """All that a run from `folder` writes, by the suffix of the output; in this process but where `env` is given."""
    names = [f"result{suffix}" for suffix in (".json", ".csv", ".md", ".txt")]
    places = [word for name in names for word in ("-o", name)]
    run = partial(run_here if env is None else run_process, cwd=folder, env=env)
    done = run(*SIDES[format_name], *OPTIONS, *options, *places)
    assert done.returncode == 0, done.stderr
    return {name: (folder / name).read_bytes().decode() for name in names} | {"stdout": done.stdout}


@pytest.mark.parametrize("env", ENVIRONMENTS, ids=str)
def test_settings_of_the_system_change_no_byte_of_a_document(sample: Path, env: dict[str, str]) -> None:
    expected = outputs(sample, "coco", "--json")
    assert outputs(sample, "coco", "--json", env=env) == expected


@pytest.mark.parametrize("seed", ["0", "4242"])
@pytest.mark.parametrize("format_name", FORMATS)
def test_hash_seeds_change_no_byte_for_any_format(sample: Path, format_name: str, seed: str) -> None:
    assert outputs(sample, format_name, env={"PYTHONHASHSEED": seed}) == outputs(sample, format_name)


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_place_of_the_folder_changes_no_byte(sample: Path, tmp_path: Path, format_name: str) -> None:
    (tmp_path / "else where/déjà").mkdir(parents=True)
    other = copy_sample(sample, tmp_path / "else where/déjà")
    assert outputs(other, format_name) == outputs(sample, format_name)


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_order_of_rows_changes_no_byte_but_the_places_of_rows_in_messages(sample: Path, format_name: str) -> None:
    expected = _without_lines(outputs(sample, format_name))
    for seed in SEEDS:
        shuffle_sample(sample, seed)
        assert _without_lines(outputs(sample, format_name)) == expected


def _without_lines(documents: dict[str, str]) -> dict[str, str]:
    """Leave out the line of "gt.csv:41", which moves with its row, and the digest of what holds it."""
    places = re.compile(r"(?<=\.(?:csv|txt)):\d+|sha256:[0-9a-f]{64}")
    return {name: places.sub("", text) for name, text in documents.items()}


def test_workers_and_the_order_of_files_change_no_byte_for_label_maps(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    maps = {f"{i}.npy": rng.integers(0, 4, (2, 30, 40), dtype=np.uint8) for i in range(12)}
    documents = set()
    for turn, workers in enumerate((1, 2, 5, None)):
        for side in (0, 1):
            folder = tmp_path / f"{side}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name in list(maps)[:: 1 if turn % 2 else -1]:
                np.save(folder / name, maps[name][side])
        documents.add(render(pixels(tmp_path / "0", tmp_path / "1", workers=workers), ReportOptions()))
    assert len(documents) == 1


@pytest.mark.parametrize("format_name", ["coco", "csv"])
def test_equal_scores_of_different_images_rank_by_image_not_by_row(tmp_path: Path, format_name: str) -> None:
    # Images a and b, one object each; a hit in a and a miss in b, both at score 0.5. By image, the hit comes first:
    # precision 1 up to recall 1/2, so AP50 = 51/101 of the 101 recalls 0, 0.01, ..., 1. The miss first: 51/101 * 1/2.
    hit, miss = box(1, 1, [0, 0, 10, 10], score=0.5), box(2, 1, [50, 50, 10, 10], score=0.5)
    values = [_ap50(tmp_path, format_name, rows) for rows in ([hit, miss], [miss, hit])]
    assert values == [pytest.approx(51 / 101)] * 2
    assert values[0] == values[1]


def _ap50(folder: Path, format_name: str, rows: list[dict[str, Any]]) -> float:
    truth = [box(1, 1, [0, 0, 10, 10]), box(2, 1, [0, 0, 10, 10])]
    gt = {
        "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
        "annotations": [{"id": i + 1, "area": 100, "iscrowd": 0, **one} for i, one in enumerate(truth)],
        "categories": [{"id": 1, "name": "dog"}],
    }
    if format_name == "coco":
        pred = write_json(folder / "pred.json", rows)
    else:
        lines = [f"{'ab'[r['image_id'] - 1]}.jpg,dog,{','.join(map(str, r['bbox']))},{r['score']}" for r in rows]
        pred = folder / "pred.csv"
        pred.write_text("\n".join(["image,class,x,y,w,h,score", *lines, ""]))
    done = run_here(write_json(folder / "gt.json", gt), pred, "--json")
    assert done.returncode == 0, done.stderr
    return float(json.loads(done.stdout)["metrics"]["AP50"])
