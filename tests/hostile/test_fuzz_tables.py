"""Parquet and Arrow with lists of objects, in every container, on damaged bytes: a sound data set or a clear error.

A crash of the library below would end the process, and this test with it.
"""

import random
import time
from pathlib import Path

import pytest
from damage import EDITS, damaged, flip
from soundness import require_sound_or_refused

from jaccard_eval.options import ReadOptions

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.slow

N_MUTANTS = 60  # of each file
SECONDS = 0.5  # for all of them; what is left of them on a slow machine is drawn another day

FLAT = pa.table(
    {
        "image": ["a.jpg", "b.jpg", "a.jpg"],
        "class": pa.array(["dog", "cat", "dog"]).dictionary_encode(),
        "bbox": [[1.0, 2, 3, 4], [1, 2, 3, 4], None],
        "score": [0.5, 1, None],
        "iscrowd": [True, False, None],
    }
)
LISTS = pa.table(
    {
        "image_id": [1, 2, 3],
        "image": [{"bytes": b"\x89PNG", "path": "a.jpg"}] * 3,
        "width": [640, 64, 6],
        "height": [480, 48, 5],
        "objects": [{"bbox": [[1.0, 2, 3, 4]] * 2, "category": [1, 0]}, {"bbox": [], "category": []}, None],
    }
)
OBJECTS = pa.table({"image_id": [1, 2], "objects": [[{"bbox": [1.0, 2, 3, 4], "category": "dog", "area": 3.5}], []]})


def write(table: pa.Table, path: Path, compression: str) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression=compression, row_group_size=2)
        return
    new = pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file
    codec = None if compression == "none" else compression
    with new(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table, max_chunksize=2)


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.arrows"])
@pytest.mark.parametrize(("table", "compression"), [(FLAT, "none"), (LISTS, "zstd"), (OBJECTS, "none")])
def test_damaged_tables_are_read_soundly_or_refused_clearly(
    table: pa.Table, name: str, compression: str, tmp_path: Path
) -> None:
    write(table, path := tmp_path / name, compression)
    rng = random.Random(f"{name} {compression} {table.schema}")
    end = time.monotonic() + SECONDS
    for _ in range(N_MUTANTS):
        with damaged(path, rng, rng.choice(((flip,), EDITS))):
            require_sound_or_refused(
                path, ReadOptions(role=rng.choice(("gt", "pred"))), rng.choice(("parquet", "arrow", None))
            )
        if time.monotonic() > end:
            break
