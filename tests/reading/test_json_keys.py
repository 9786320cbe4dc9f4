"""Keys in JSON bytes: never fewer counted than there are, and the outermost ones found in a cut-off file."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.reading import json as _json_keys
from jaccard_eval.reading.json import may_repeat_keys, record_keys

TEXTS = st.text(st.sampled_from('ab"\\ é:,{}'), max_size=70)
RECORDS = st.lists(st.fixed_dictionaries({"bbox": TEXTS}, optional={"area": TEXTS, "note": TEXTS}), max_size=5)


def explained(records: list[dict[str, Any]]) -> dict[str, int]:
    return {key: sum(key in record for record in records) for key in ("bbox", "area")}


def test_keys_that_the_records_explain_are_not_suspected() -> None:
    data = b'[{"bbox": 1, "area": 2, "note": "x"}, {"bbox": 3}]'
    assert not may_repeat_keys(data, {"bbox": 2, "area": 1})


def test_one_key_more_than_explained_is_suspected() -> None:
    data = b'[{"bbox": 1, "area": 2, "area": 3}, {"bbox": 3}]'
    assert may_repeat_keys(data, {"bbox": 2, "area": 1})


def test_an_equal_number_of_quotes_settles_it_without_a_look_at_the_keys() -> None:
    assert not may_repeat_keys(b'[{"bbox": "area"}]', {"bbox": 1, "area": 0}, texts=1)


def test_keys_of_parts_set_aside_do_not_count() -> None:
    data = b'{"info": {"id": 1}, "images": [{"id": 2}]}'
    assert may_repeat_keys(data, {"id": 1, "images": 1})
    assert not may_repeat_keys(data, {"id": 1, "images": 1}, set_aside=[b'{"id": 1}'])


def test_another_key_of_the_same_length_and_first_letter_is_told_apart() -> None:
    assert not may_repeat_keys(b'[{"bbox": 1, "bbbb": 2}]', {"bbox": 1})


def test_keys_written_with_escapes_are_suspected() -> None:
    assert may_repeat_keys(rb'[{"bbox": 1, "bb\u006fx": 2}]', {"bbox": 1})
    assert not may_repeat_keys(rb'[{"bbox": 1, "note": "\u00e9"}]', {"bbox": 1})


@given(RECORDS, st.sampled_from(["bbox", "area"]), st.integers(0, 4))
def test_a_repeated_key_never_goes_unnoticed(records: list[dict[str, str]], key: str, row: int) -> None:
    once = [json.dumps(record, ensure_ascii=False) for record in records]
    if row >= len(records) or key not in records[row]:
        return
    once[row] = f'{{"{key}": 0, {once[row][1:]}'
    assert may_repeat_keys(f"[{', '.join(once)}]".encode(), explained(records))


def test_a_key_across_the_border_of_two_blocks_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_json_keys, "_BLOCK", 16)
    for shift in range(20):
        data = b'[{"note":"' + b"x" * shift + b'","bbox":1},{"bbox":2,"bbox":3}]'
        assert may_repeat_keys(data, {"bbox": 2})
        assert not may_repeat_keys(data, {"bbox": 3})


def test_only_keys_of_the_outermost_object_or_of_records_are_returned() -> None:
    assert record_keys(b'{"images": [{"id": 1}], "x": {"y": "z"}') == ({"images", "x"}, set())
    assert record_keys(b' [{"image_id": 1, "a": {"b": 2}}, {"bbox": [') == (set(), {"image_id", "a", "bbox"})


def test_brackets_and_quotes_inside_texts_are_no_structure() -> None:
    assert record_keys(rb'{"a": "]}\"{\"b\": ", "c": 1}') == ({"a", "c"}, set())


def test_heads_that_are_no_json_give_no_keys() -> None:
    for head in (b"", b"]]]}", b'"unfinished', b"<html>", bytes(range(256))):
        assert record_keys(head) == (set(), set())
