import gzip
import os
import re
from pathlib import Path

import pytest

from jaccard_eval.reading import files
from jaccard_eval.reading.peek import Kind, Likeness, Peek, rate_keys


def test_the_levels_are_ordered_by_how_sure_they_are() -> None:
    assert Likeness.NAMED > Likeness.STRUCTURE > Likeness.CONTENT > Likeness.SUFFIX
    assert all(Likeness)  # none is as false as None


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", Kind.EMPTY),
        (b" \n", Kind.EMPTY),
        (b'\xef\xbb\xbf {"a": 1}', Kind.JSON_OBJECT),
        (b'{"a": 1}\n', Kind.JSON_OBJECT),
        (b'{"a": 1}\n{"a": 2}\n', Kind.JSON_LINES),
        (b'{\n"a": 1}\n', Kind.JSON_OBJECT),
        (b'{"a":' * 20_000 + b"\n{}", Kind.JSON_OBJECT),  # too deep to be parsed
        (b"[1]", Kind.JSON_LIST),
        (gzip.compress(b"[1]", mtime=0), Kind.JSON_LIST),
        (b"<a/>", Kind.XML),
        (b"a,b\n", Kind.TEXT),
        (b"a\0b\n", Kind.BINARY),
    ],
)
def test_what_a_file_holds_is_told_by_its_first_characters(content: bytes, kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    assert Peek(tmp_path / "a").kind is kind
    assert Peek(tmp_path).kind is Kind.FOLDER


def test_a_look_at_json_gives_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": {"b": 1}}\n{"c": [1]}\n')
    assert (Peek(path).top_keys, Peek(path).item_keys) == ({"a", "c"}, set())
    path.write_text('[{"a": {"b": 1}}, {"c": [1]}]')
    assert (Peek(path).top_keys, Peek(path).item_keys) == (set(), {"a", "c"})
    path.write_text('"a": 1')
    assert (Peek(path).top_keys, Peek(path).item_keys, Peek(path).maps_images) == (set(), set(), False)


@pytest.mark.parametrize(
    ("content", "maps_images"),
    [('{"a.jpg": []}', True), ("[[{}]]", True), ('{"images": []}', False), ('[{"a": 1}]', False)],
)
def test_an_object_of_parts_is_no_mapping_from_images(content: str, maps_images: bool, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    assert Peek(tmp_path / "a.json").maps_images == maps_images


def test_lines_end_as_on_any_system_and_are_twenty_at_most(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\n a\r\n\rb\xff\n")
    assert Peek(path).lines == [" a", "b�"]
    path.write_text("x\n" * 99)
    assert Peek(path).lines == ["x"] * 20
    path.write_text("x" * 99_999)
    assert Peek(path).lines == ["x" * 65536]


def test_a_file_is_opened_once_however_often_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    read_head = files.head
    monkeypatch.setattr(files, "head", lambda path: opened.append(path) or read_head(path))
    (tmp_path / "a.json").write_text('{"a": 1}')
    peek = Peek(tmp_path)
    for _ in range(2):
        (file,) = peek.documents()
        assert (file.top_keys, file.lines, file.root) == ({"a"}, ['{"a": 1}'], "")
        assert peek.at(tmp_path / "a.json").kind is Kind.JSON_OBJECT
    assert opened == [tmp_path / "a.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_empty_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    peek = Peek(tmp_path / "a.json")
    assert (peek.kind, peek.head, peek.lines, peek.documents()) == (Kind.EMPTY, b"", [], [])
    assert Peek(tmp_path).rate_documents(lambda _: Likeness.NAMED) is None


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    peek = Peek(tmp_path / "nowhere")
    assert (peek.kind, peek.is_folder, peek.files, peek.folders) == (Kind.EMPTY, False, [], [])


def test_documents_are_those_of_the_first_level_that_has_any(tmp_path: Path) -> None:
    def lay(name: str, content: str = "{}") -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)

    def found(*besides: str) -> list[str]:
        return [peek.path.relative_to(tmp_path).as_posix() for peek in Peek(tmp_path).documents(besides)]

    lay("meta.json")
    lay(".hidden.json")
    lay("a.txt")
    assert found() == []
    lay("one/two/three/a.json")
    assert found() == []  # deeper than anyone lays documents
    lay("one/two/a.JSON")
    lay("one/other/b.json")
    assert found() == ["one/other/b.json", "one/two/a.JSON"]
    assert found("other/") == ["one/two/a.JSON"]
    lay("empty.json", " []\n")
    assert found() == []  # the level counts, and its file speaks for no format
    lay("z.json")
    assert found() == ["z.json"]
    assert found("z.json") == []


def test_a_folder_is_what_at_least_half_of_its_documents_are(tmp_path: Path) -> None:
    levels = {"a": Likeness.NAMED, "b": Likeness.CONTENT, "c": None}

    def rate(*keys: str) -> Likeness | None:
        for old in tmp_path.iterdir():
            old.unlink()
        for number, key in enumerate(keys):
            (tmp_path / f"{number}.json").write_text(f'{{"{key}": 1}}' if key else "not JSON")
        return Peek(tmp_path).rate_documents(lambda peek: levels[min(peek.top_keys)])

    assert rate() is None
    assert rate("a") is Likeness.NAMED
    assert rate("a", "c") is Likeness.NAMED
    assert rate("a", "") is Likeness.NAMED
    assert rate("a", "c", "c") is None
    assert rate("a", "b", "c") is Likeness.CONTENT  # two of three reach it
    assert rate("a", "a", "b") is Likeness.NAMED
    assert rate("c", "") is None


def test_file_names_of_classes_name_a_format_unless_most_texts_are_called_otherwise(tmp_path: Path) -> None:
    def rate(*names: str) -> Likeness | None:
        for name in names:
            (tmp_path / name).touch()
        return Peek(tmp_path).rate_class_files(re.compile(r"det_(?P<label>.+)\.txt"))

    assert rate("README.txt", "classes.txt", "a.png") is None
    assert rate("det_dog.txt") is Likeness.NAMED
    assert rate("other.txt") is Likeness.NAMED
    assert rate("more.txt") is Likeness.STRUCTURE


def test_keys_are_a_structure_when_no_others_stand_beside() -> None:
    assert rate_keys({"a", "b"}, ("a", "b"), ("c",)) is Likeness.STRUCTURE
    assert rate_keys({"a", "b", "c"}, ("a", "b"), ("c",)) is Likeness.STRUCTURE
    assert rate_keys({"a", "b", "x"}, ("a", "b"), ("c",)) is Likeness.CONTENT
    assert rate_keys({"a", "c"}, ("a", "b"), ("c",)) is None
