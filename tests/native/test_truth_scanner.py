"""The compiled reader of ground truth gives what the Python readers give, or leaves the text to them."""

import json
from dataclasses import fields
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaccard_eval import native
from jaccard_eval.findings import FindingLog
from jaccard_eval.formats._coco.strict import Content, TruthRecord, decode_truth, truth_columns
from jaccard_eval.formats._coco.tolerant import read_truth
from jaccard_eval.native import calls
from jaccard_eval.native.calls import SHORTEST_ANNOTATION, RecordColumns, ScannedTruth, scan_truth, scan_truth_file

needs_core = pytest.mark.skipif(native.load_core() is None, reason="no compiled core, or it is turned off")

BOX = '"image_id":1,"category_id":1,"bbox":[1,1,1,1]'
SOUND = (
    '{"info": {"year": [2014, null]}, "images": [{"id": 7, "file_name": "ä\\u00e9.jpg", "width": 640, "height": 4.5}]'
    ',\n "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "bbox": [1.5, -2, 3e1, 0.1], "area": 12,'
    ' "iscrowd": 0, "segmentation": {"counts": "a\\\\b\\"c", "size": [1, 2]}},'
    ' {"id": -2, "image_id": 7, "category_id": 3, "bbox": [0, 0, 1, 1], "ignore": 1,'
    ' "segmentation": [[1.0, 2, -3.25e-1]], "more": {"id": true, "x": []}}],\n'
    ' "categories": [{"id": 3, "name": "dog", "supercategory": "pet"}]}\n'
)


def in_python(text: bytes) -> tuple[Content[TruthRecord], RecordColumns]:
    """Read without the core; what the strict reader leaves, the tolerant one has to read without a finding."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(native.VARIABLE, "0")
        decoded = decode_truth(text)
    if decoded is None:
        log = FindingLog()
        content = read_truth(Path("gt.json"), text.decode(), log)
        assert not log.findings()
        decoded = content, truth_columns(content.boxes)
    return decoded


def bits(columns: RecordColumns) -> list[object]:
    """Return the columns as bytes, which tell 0 from -0."""
    arrays = (columns.image, columns.category, columns.coords, columns.area, columns.iscrowd, columns.ignore)
    return [np.asarray(column).tobytes() for column in arrays] + [list(columns.ids), columns.n_scored]


def require_alike(data: bytes) -> bool:
    """Require that what the core reads is what Python reads; return whether it reads it."""
    # Before either is asked, a text that is not ASCII is looked at as a whole.
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    if scan_truth(data) is None:
        return False
    quick = decode_truth(data)
    if quick is None:  # images or categories of an odd kind
        return False
    (content, columns), (other, others) = quick, in_python(data)
    assert bits(columns) == bits(others), data
    assert (content.images, content.categories) == (other.images, other.categories), data
    return True


def test_a_text_has_no_more_annotations_than_room_is_made_for() -> None:
    assert len(f"{{{BOX}}},") == SHORTEST_ANNOTATION


@needs_core
@pytest.mark.parametrize("indent", [None, 2])
def test_what_tools_write_is_read_by_the_core(indent: int | None) -> None:
    rng = np.random.default_rng(3)
    annotations = [
        {
            "segmentation": [rng.uniform(0, 600, 8).tolist()],
            "area": rng.uniform(0, 1e5),
            "iscrowd": int(rng.random() < 0.1),
            "image_id": int(i),
            "bbox": rng.uniform(0, 600, 4).round(int(rng.integers(0, 17))).tolist(),
            "category_id": int(i % 80),
            "id": n,
        }
        for n, i in enumerate(rng.integers(0, 600, 500))
    ]
    images = [{"id": i, "file_name": f"{i:012}.jpg", "license": 3, "height": 427, "width": 640} for i in range(600)]
    categories = [{"id": i, "name": f"名 {i}", "supercategory": "x"} for i in range(80)]
    truth = {"info": {}, "licenses": [], "images": images, "annotations": annotations, "categories": categories}
    assert require_alike((json.dumps(truth, indent=indent) + "\n").encode())
    assert require_alike(json.dumps(truth | {"annotations": []}, ensure_ascii=False).encode())


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,4})?", fullmatch=True),
    st.sampled_from(["-0", "-0.0", "1e400", "-1e400", "1e-400", "01", "1.", "NaN", "Infinity", "null", "true", '"1"']),
)
VALUES = st.one_of(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "area", "x"]), inner),
        max_leaves=6,
    ).map(json.dumps),
    st.sampled_from(['"\\x"', '"\\ud800"', '"\\u12"', '"a\tb"', '"\\u0000"', "[1,]", "{,}", "tru", "01", "[1 2]", ""]),
)
BLANKS = st.text(" \n\t\r", max_size=2)


def objects(draw: st.DrawFn, fields: list[tuple[str, str]]) -> str:
    """Write a list of one or two objects with some of the fields, and now and then one of them twice or an odd one."""
    texts = []
    for _ in range(draw(st.integers(1, 2))):
        more = st.sampled_from([*fields, ("odd", draw(VALUES)), ("\\u0069d", "1")])
        blank, chosen = draw(BLANKS), [*fields, *draw(st.lists(more, max_size=1))]
        written = [f'"{key}"{blank}:{value}' for key, value in draw(st.permutations(chosen))]
        texts.append(f"{{{blank}{f'{blank},'.join(written)}}}")
    return f"[{draw(BLANKS)}{','.join(texts)}]"


@st.composite
def truths(draw: st.DrawFn) -> str:
    """Draw a text that is ground truth, or nearly."""
    numbers = st.sampled_from(["1", "2"]) | NUMBERS
    box = f"[{','.join(draw(numbers) for _ in range(draw(st.sampled_from([4, 4, 4, 3, 5]))))}]"
    optional = [("area", draw(numbers)), ("iscrowd", draw(numbers)), ("ignore", draw(numbers)), ("id", draw(numbers))]
    needed = [("image_id", draw(numbers)), ("category_id", draw(numbers)), ("bbox", box)]
    annotation = needed + draw(st.lists(st.sampled_from([*optional, ("segmentation", draw(VALUES))]), unique=True))
    more = st.sampled_from([("width", draw(numbers)), ("file_name", draw(VALUES))])
    image = [("id", draw(numbers)), *draw(st.lists(more, max_size=1))]
    category = [("id", draw(numbers)), ("name", draw(st.sampled_from(['"dog"', "null", draw(VALUES)])))]
    sections = [
        f'"images":{objects(draw, image)}',
        f'"annotations":{objects(draw, annotation)}',
        f'"categories":{objects(draw, category)}',
    ]
    sections += draw(st.sampled_from([[], [], [f'"info":{draw(VALUES)}'], ['"images":[]']]))
    return f"{draw(BLANKS)}{{{','.join(draw(st.permutations(sections)))}}}{draw(BLANKS)}"


@needs_core
@given(truths())
@example(SOUND)
def test_any_ground_truth_is_read_alike_or_left_to_python(text: str) -> None:
    require_alike(text.encode("utf-8", "surrogatepass"))


@needs_core
def test_a_text_cut_anywhere_is_left_to_python() -> None:
    data = SOUND.encode()
    assert require_alike(data)
    assert not [end for end in range(len(data.rstrip())) if scan_truth(data[:end]) is not None]


@needs_core
@pytest.mark.parametrize("byte", [*b'"{}[],:.-eE0 9\n\\\0\x1f\x80\xff'])
def test_a_byte_changed_anywhere_is_read_alike_or_left_to_python(byte: int) -> None:
    data = SOUND.encode()
    for place in range(len(data)):
        require_alike(data[:place] + bytes([byte]) + data[place + 1 :])
        require_alike(data[:place] + bytes([byte]) + data[place:])


@needs_core
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"id": 1, "image_id"', '"id": 1234567890123456789, "image_id"'),
        ('"id": 1, "image_id"', '"image_id"'),  # one annotation without an id
        ('"image_id": 7, "category_id": 3, "bbox": [1', '"image_id": 7.0, "category_id": 3, "bbox": [1'),
        ('"area": 12', '"area": null'),
        ('"area": 12', '"area": 1e400'),
        ('"area": 12', '"area": 12, "area": 13'),
        ('"area": 12', '"ar\\u0065a": 12'),
        ('"area": 12', '"area": 12, "score": 1'),
        ('"area": 12', '"area": 12, "is_group_of": 1'),
        ('"area": 12', '"area": 12, "isgroupof": 0'),
        ('"area": 12', '"IsGroupOf": 0, "area": 12'),
        ('"iscrowd": 0', '"iscrowd": 2'),
        ('"iscrowd": 0', '"iscrowd": false'),
        ('"year": [2014, null]', '"year": ' + "[" * 65 + "]" * 65),
        ('"name": "dog"', '"name": "dog", "name": "cat"'),
        ('{"info"', '\ufeff{"info"'),
        ('"categories"', '"kategorien"'),
        (', "images": [', ', "annotations": [], "images": ['),
    ],
)
def test_what_is_out_of_the_ordinary_is_left_to_python(old: str, new: str) -> None:
    assert old in SOUND
    assert scan_truth(SOUND.replace(old, new, 1).encode()) is None


def test_the_core_is_off_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.VARIABLE, "0")
    assert scan_truth(SOUND.encode()) is None


def parts(scanned: ScannedTruth | None) -> list[object] | None:
    """Return what was read as bytes; None where nothing was."""
    if scanned is None:
        return None
    values = [getattr(scanned.columns, field.name) for field in fields(scanned.columns)]
    values += [scanned.images, scanned.categories]
    return [value.tobytes() if isinstance(value, np.ndarray) else value for value in values]


CATEGORIES = SOUND[SOUND.index('"categories"') : -2]
REST = SOUND.replace(CATEGORIES, '"rest": 1')[1:]


@needs_core
@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        (SOUND, True),
        (SOUND.replace("[{", "[ {").replace("}]", "} ] ") + " \n", True),
        (f"{{{CATEGORIES}, {REST}", True),
        ('{"images": [ ], "annotations": [], "categories": []}', True),
        (SOUND[:-3], False),
        (SOUND[:-2] + "]}", False),
        (SOUND + "}", False),
        (SOUND.replace("}],", "},],"), False),
        (SOUND.replace("}]}", "}],}"), False),
        (SOUND.replace('"categories"', '"images"'), False),
    ],
)
def test_pieces_of_any_size_give_what_the_whole_gives(
    text: str, is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = text.encode()
    whole = parts(scan_truth(data))
    assert (whole is not None) == is_plain
    for size in range(1, len(data) + 1):
        monkeypatch.setattr(calls, "PIECE", size)
        assert parts(scan_truth(data)) == whole


@needs_core
@given(st.integers(0, len(SOUND.encode())), st.integers(0, 9), st.binary(max_size=9), st.integers(1, 90))
def test_damage_is_seen_in_pieces_as_in_the_whole(at: int, n: int, filler: bytes, size: int) -> None:
    data = SOUND.encode()
    data = data[:at] + filler + data[at + n :]
    whole = parts(scan_truth(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "PIECE", size)
        assert parts(scan_truth(data)) == whole


@needs_core
def test_an_entry_that_is_larger_than_any_piece_is_left_to_the_python_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "PIECE", 1)
    monkeypatch.setattr(calls, "LARGEST_PIECE", 1 << 5)
    assert scan_truth(SOUND.encode()) is None


@needs_core
def test_a_file_is_read_as_its_text_is_unless_it_is_not_ascii() -> None:
    text = SOUND.replace("ä", "a").encode()
    assert parts(scan_truth_file(BytesIO(text), len(text))) == parts(scan_truth(text)) is not None
    other = SOUND.encode()
    assert scan_truth_file(BytesIO(other), len(other)) is None
    assert scan_truth_file(BytesIO(text), len(text) + 1) is not None  # shorter than it was: the end is what there is
    assert scan_truth_file(BytesIO(text), len(text) - 9) is None
