"""Results lists are decoded in pieces; a file that is wrong anywhere is left to the readers that can say where."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaccard_eval.formats._coco import strict
from jaccard_eval.formats._coco.strict import decode_plain_results

RECORD = {"image_id": 7, "category_id": 3, "bbox": [1.5, 2, 30, 4e1], "score": 0.25}
PIECE = 100  # bytes: about one record a piece


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict, "_PIECE_BYTES", PIECE)


def listed(n: int) -> list[dict[str, Any]]:
    return [RECORD | {"image_id": i, "score": i / 8} for i in range(n)]


@pytest.mark.parametrize("n", [1, 2, 3, 50])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_of_any_length_is_read_whole_and_in_order(n: int, indent: int | None) -> None:
    found = decode_plain_results((json.dumps(listed(n), indent=indent) + "\n").encode())
    assert found is not None
    _, columns = found
    assert columns.image.tolist() == list(range(n))
    assert columns.score.tolist() == [i / 8 for i in range(n)]
    assert columns.coords.tolist() == [[1.5, 2.0, 30.0, 40.0]] * n


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        json.dumps(listed(3))[:-1],
        json.dumps(listed(3)) + "]",
        json.dumps(listed(3)) + json.dumps(listed(3)),
        json.dumps(listed(3)).replace("}]", "},]"),
        json.dumps(listed(3)).replace("}]", "}, ]"),
        json.dumps(listed(3)).replace("}, {", "},, {", 1),
        json.dumps(listed(3)).replace("}, {", "} {", 1),
        json.dumps(listed(3)).replace('"score": 0.25', '"score": 0.25, "score": 0.5'),
        json.dumps([*listed(2), RECORD | {"file_name": "a},{b.jpg"}]),
        json.dumps([*listed(2), RECORD | {"segmentation": [{"a": {}}, {}]}]),
        json.dumps([*listed(2), RECORD | {"image_id": "7"}]),
        json.dumps([*listed(2), RECORD | {"image_id": 2**63}]),
        json.dumps([*listed(2), RECORD | {"score": float("nan")}]),
        json.dumps([*listed(2), None]),
    ],
)
def test_what_is_not_plain_is_left_to_the_other_readers(text: str) -> None:
    assert decode_plain_results(text.encode()) is None


def test_a_comma_behind_the_last_record_is_left_to_the_other_readers_wherever_pieces_are_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = json.dumps(listed(3)).replace("}]", "},]").encode()
    for size in range(1, len(text)):
        monkeypatch.setattr(strict, "_PIECE_BYTES", size)
        assert decode_plain_results(text) is None


@given(st.integers(1, 4), st.data())
@example(2, None)
def test_no_edit_of_a_file_is_read_as_anything_but_what_it_says(n: int, data: Any) -> None:
    text = json.dumps(listed(n)).encode()
    if data is not None:
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 3))
        text = (
            text[:at]
            + data.draw(st.sampled_from([b"", b",", b"}", b"{", b"]", b"[", b'"', b" ", b"1"]))
            + text[at + cut :]
        )
    found = decode_plain_results(text)
    if found is not None:
        _, columns = found
        said = json.loads(text)
        assert columns.image.tolist() == [record["image_id"] for record in said]
        assert columns.category.tolist() == [record["category_id"] for record in said]
        assert columns.coords.tolist() == [record["bbox"] for record in said]
        assert columns.score.tolist() == [record["score"] for record in said]
        assert all(set(record) == set(RECORD) for record in said)
