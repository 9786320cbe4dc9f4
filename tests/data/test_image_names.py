import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.data.imagekeys import bare_names, folded, number_text, path_ends, stem_of, undecorated_forms

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"  # é as one character, and as e with an accent: macOS writes the latter


def test_ends_of_a_path_start_with_the_whole() -> None:
    assert path_ends("a/b/c") == ["a/b/c", "b/c", "c"]


def test_a_stem_has_neither_folder_nor_suffix() -> None:
    assert stem_of(r"val\a.b.PNG") == "a.b"


@pytest.mark.parametrize(
    ("names", "bare"),
    [
        (["a.b.PNG", "c.PNG"], ["a.b", "c"]),
        (["a.1", "b.1"], ["a.1", "b.1"]),
        (["a", "b.png"], ["a", "b"]),
        (["v/a.png", "w/b.png"], ["a", "b"]),
        (["v/a.png", "w/a.png"], ["v/a", "w/a"]),
        ([r".\v\a.png", "w/b.png"], ["a", "b"]),
        ([], []),
    ],
)
def test_bare_names_lose_suffixes_of_images_and_folders_that_say_nothing(names: list[str], bare: list[str]) -> None:
    assert bare_names(names) == bare


@pytest.mark.parametrize("name", ["IMG_1 a", "img-1-a", "Img 1_A"])
def test_case_and_space_dash_or_underscore_are_one_when_folded(name: str) -> None:
    assert folded(name) == "img_1_a"


def test_both_compositions_of_an_accent_are_one_when_folded() -> None:
    assert folded(COMPOSED) == folded(DECOMPOSED) == folded(COMPOSED.upper())


@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@pytest.mark.parametrize(
    ("path", "forms"),
    [
        ("a", ["a"]),
        ("photo_jpg.rf.0123456789abcdef", ["photo"]),
        ("photo.rf.0123456789abcdef", ["photo"]),
        ("photo_jpg.rf.short", ["photo_jpg.rf.short"]),
        ("ab12cd34_photo", ["ab12cd34_photo", "photo"]),
        ("ab12cd3_photo", ["ab12cd3_photo"]),
        ("ab12cd34_", ["ab12cd34_"]),
        ("ab12cd34_photo_png.rf.0123456789", ["ab12cd34_photo", "photo"]),
        ("val/left/1", ["val_left_1", "left_1", "1"]),
    ],
)
def test_what_tools_add_to_a_name_is_dropped_form_by_form(path: str, forms: list[str]) -> None:
    assert undecorated_forms(path) == forms


@pytest.mark.parametrize(
    ("name", "number"),
    [("42", "42"), ("000000000042.jpg", "42"), ("val/007.png", "7"), ("000", "0"), ("a1", None), ("", None),
     ("-1", None), ("1.5", None), ("\u0661", None), ("9" * 5000, "9" * 5000)],
)  # fmt: skip
def test_a_name_is_a_number_only_in_plain_digits(name: str, number: str | None) -> None:
    assert number_text(name) == number
