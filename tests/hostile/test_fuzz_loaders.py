"""Every loader on damaged and on arbitrary bytes: a sound dataset or a clear error, never another exception."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from damage import TOKENS, damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mask_carriers import LAYOUTS, OTHERS
from soundness import require_sound_or_refused
from valid_inputs import Input, copy_inputs, write_example

from jaccard_eval.formats import format_names
from jaccard_eval.options import ReadOptions

pytestmark = pytest.mark.slow

N_MUTANTS = 150  # of each format and role
SECONDS = 1.5  # for all of them, twice what it takes; what is left of them on a slow machine is drawn another day

ROLES = ("gt", "pred")
OPTIONS: tuple[dict[str, Any], ...] = (
    *({},) * 4,
    {"names": ("cat", "dog")},
    *({"box": box} for box in ("xyxy", "xywh", "cxcywh", "yxyx")),
    *({"units": units} for units in ("px", "norm")),
    *({"columns": columns} for columns in ("box", "conf-box", "polygon")),
    {"assume_score": 1.0},
    {"origin": 1},
    {"split": "train"},
)
bytes_of_every_kind = st.one_of(st.binary(max_size=300), st.lists(st.sampled_from(TOKENS)).map(b" ".join))
soup = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def inputs(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Input]:
    return copy_inputs(sample_data, tmp_path_factory.mktemp("inputs"))


@pytest.mark.parametrize("name", format_names())
def test_every_format_has_an_input_to_damage(name: str, inputs: list[Input]) -> None:
    assert [one.path for one in inputs if one.format_name == name]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", format_names())
def test_damaged_files_are_read_soundly_or_refused_clearly(name: str, role: str, inputs: list[Input]) -> None:
    rng = random.Random(f"{name} as {role}")
    own = [one for one in inputs if one.format_name == name]
    end = time.monotonic() + SECONDS
    for _ in range(N_MUTANTS):
        one = rng.choice(own)
        options = ReadOptions(role=role, **rng.choice(OPTIONS))
        with damaged(rng.choice(one.files), rng):
            require_sound_or_refused(one.path, options, rng.choice((name, None)))
        if time.monotonic() > end:
            break


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", [*LAYOUTS, *OTHERS])
def test_damaged_carriers_of_masks_are_read_soundly_or_refused_clearly(name: str, role: str, tmp_path: Path) -> None:
    rng = random.Random(f"{name} as {role}")
    path = (LAYOUTS | OTHERS)[name](tmp_path, role)
    found = [path] if path.is_file() else sorted(path.iterdir())
    end = time.monotonic() + SECONDS
    for _ in range(N_MUTANTS):
        options = ReadOptions(role=role, iou_type=rng.choice(("segm", "bbox", "obb")), **rng.choice(OPTIONS))
        with damaged(rng.choice(found), rng):
            require_sound_or_refused(path, options, None)
        if time.monotonic() > end:
            break


@soup
@given(content=bytes_of_every_kind, role=st.sampled_from(ROLES))
@pytest.mark.parametrize("name", format_names())
def test_any_bytes_are_read_soundly_or_refused_clearly(name: str, role: str, content: bytes, tmp_path: Path) -> None:
    for path in write_example(tmp_path, name):
        file = path if path.is_file() else next(path.iterdir())
        file.write_bytes(content)
        require_sound_or_refused(path, ReadOptions(role=role), name)
        require_sound_or_refused(path, ReadOptions(role=role), None)


values = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    *(st.sampled_from([0, 1, 2, 1.0, 2**53 + 1, 2**63, -(2**63) - 1, 10**400, "1", "a.jpg"]),),
)
boxes = st.one_of(st.lists(st.one_of(st.floats(), st.integers(-5, 100)), min_size=4, max_size=4), st.lists(values))
records = st.fixed_dictionaries(
    {},
    optional={
        "image_id": st.one_of(st.just(1), values),
        "category_id": st.one_of(st.just(1), values),
        "bbox": st.one_of(boxes, values),
        "score": st.one_of(st.just(0.5), values),
        **dict.fromkeys(("id", "area", "iscrowd", "ignore", "file_name", "category_name", "segmentation"), values),
    },
)
entries = st.fixed_dictionaries(
    {"id": st.one_of(st.just(1), values)}, optional=dict.fromkeys(("name", "file_name", "width", "height"), values)
)
documents = st.one_of(
    st.lists(st.one_of(records, values), max_size=4),
    st.fixed_dictionaries(
        {},
        optional={
            "images": st.one_of(st.lists(entries, max_size=3), values),
            "annotations": st.one_of(st.lists(records, max_size=4), values),
            "categories": st.one_of(st.lists(entries, max_size=3), values),
            "info": values,
        },
    ),
)


@soup
@given(document=documents, role=st.sampled_from(ROLES), encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_any_json_is_read_soundly_or_refused_clearly(
    document: object, role: str, encoding: str, tmp_path: Path
) -> None:
    path = tmp_path / "input.json"
    path.write_text(json.dumps(document, ensure_ascii=encoding == "utf-16"), encoding=encoding, errors="surrogatepass")
    require_sound_or_refused(path, ReadOptions(role=role), "coco")


headers = st.sampled_from(
    [
        "image,class,xmin,ymin,xmax,ymax,score",
        "filename;label;x;y;w;h;conf;width;height",
        "ImageID\tLabelName\tXMin\tXMax\tYMin\tYMax\tIsGroupOf",
        "image_id,bbox,class,score,area,iscrowd",
        "image_id,PredictionString,a,b,c",
        "image_id,width,height,bbox,source",
        "a.jpg,1,2,3,4,dog",
    ]
)
cells = st.sampled_from(
    [
        "",
        "a.jpg",
        "dog",
        "1",
        "2.5",
        "40",
        "0.5",
        "1,5",
        '"1,5"',
        '"[1, 2, 3, 4]"',
        "0.5 1 2 3 4",
        "x 1 0 0 1 1",
        "nan",
        "1e308",
        '"',
    ]
)


@soup
@given(header=headers, table=st.lists(st.lists(cells, min_size=5, max_size=9), max_size=6), data=st.data())
def test_any_table_is_read_soundly_or_refused_clearly(
    header: str, table: list[list[str]], data: st.DataObject, tmp_path: Path
) -> None:
    mark = next(mark for mark in ";\t," if mark in header)
    end = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    path = tmp_path / "input.csv"
    path.write_text(end.join([header, *map(mark.join, table)]), encoding="utf-8", newline="")
    require_sound_or_refused(path, ReadOptions(role=data.draw(st.sampled_from(ROLES))), "csv")


words = st.one_of(
    st.integers(-1, 80).map(str), st.floats(0, 1).map(str), st.floats().map(str), st.sampled_from(["cat", "1e400"])
)


@soup
@given(lines=st.lists(st.lists(words, min_size=1, max_size=12), max_size=6), role=st.sampled_from(ROLES))
def test_any_label_lines_are_read_soundly_or_refused_clearly(lines: list[list[str]], role: str, tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir(exist_ok=True)
    (tmp_path / "labels/a.txt").write_text("\n".join(map(" ".join, lines)))
    require_sound_or_refused(tmp_path / "labels", ReadOptions(role=role), "yolo")
