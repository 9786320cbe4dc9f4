"""What every format must do, whoever writes it: found by its name, tested by its own example."""

import ast
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import BoxTable, DataError
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.formats import format_module, format_names, read_dataset, write_dataset
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.peek import Likeness, Peek

NAMES = format_names()
WRITTEN = [name for name in NAMES if hasattr(format_module(name), "write")]
TEXTS = [name for name in NAMES if not hasattr(format_module(name), "write_example")]


def write_example(name: str, folder: Path) -> Path:
    """Write the example of a format and return the file."""
    module = format_module(name)
    about = module.FORMAT
    file = folder / f"example{about.suffixes[0] if about.suffixes else about.member}"
    folder.mkdir(parents=True)
    if hasattr(module, "write_example"):
        module.write_example(file)
    else:
        file.write_text(about.example, encoding="utf-8")
    return file


def as_input(name: str, file: Path) -> Path:
    """Return what a user passes: the file, or its folder."""
    return file if format_module(name).FORMAT.suffixes else file.parent


@pytest.mark.parametrize("name", NAMES)
def test_of_the_example_its_own_format_is_surest(name: str, tmp_path: Path) -> None:
    peek = Peek(as_input(name, write_example(name, tmp_path / "data")))
    levels = {known: format_module(known).looks_like(peek) or 0 for known in NAMES}
    assert [known for known in NAMES if levels[known] == max(levels.values())] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_looking_at_anything_is_quiet(name: str, tmp_path: Path) -> None:
    module = format_module(name)
    suffix = (*module.FORMAT.suffixes, module.FORMAT.member)[0]
    contents = (
        b"",
        b" \n",
        b"\0" * 100,
        bytes(range(256)),
        b"[" * 70_000,
        b'{"a":' * 20_000,
        b'"' * 70_000,
        b"<" * 999,
    )
    for number, content in enumerate((*contents, b"1," * 40_000, b"\x1f\x8b\x08 no gzip")):
        file = tmp_path / f"{number}/a{suffix}"
        file.parent.mkdir()
        file.write_bytes(content)
        for path in (file, file.parent):
            # Of such things no format knows more than what they are called, but for a folder of tables.
            assert (module.looks_like(Peek(path)) or 0) <= Likeness.STRUCTURE
    assert module.looks_like(Peek(tmp_path / f"nowhere{suffix}")) in (None, Likeness.SUFFIX)


@pytest.mark.parametrize("name", NAMES)
def test_no_format_knows_of_another(name: str) -> None:
    source = Path(str(format_module(name).__file__)).read_text(encoding="utf-8")  # type: ignore[attr-defined]
    nodes = ast.walk(ast.parse(source))
    imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    inside = {module.removeprefix("jaccard_eval.formats.") for module in imported if ".formats." in module}
    assert {module for module in inside if not module.startswith("_")} == set()


@pytest.mark.parametrize("name", NAMES)
def test_the_example_loads_without_a_warning(name: str, tmp_path: Path) -> None:
    dataset = read_dataset(as_input(name, write_example(name, tmp_path / "data")), ReadOptions())
    assert len(dataset.boxes) > 0
    assert [str(one) for one in dataset.findings if one.severity != "note"] == []


@pytest.mark.parametrize("name", NAMES)
def test_pixels_counted_from_one_are_moved_by_one_and_fractions_are_not(name: str, tmp_path: Path) -> None:
    path = as_input(name, write_example(name, tmp_path / "data"))
    as_written, from_one = (read_dataset(path, ReadOptions(origin=origin)) for origin in (0, 1))
    is_px = as_written.reading.units == "px"
    assert (as_written.boxes.xywh - from_one.boxes.xywh).tolist() == [[is_px, is_px, 0, 0]] * len(from_one.boxes)
    assert [one.code for one in from_one.findings].count("origin-unused") == (not is_px)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_that_was_cut_off_is_an_error_that_names_the_file(name: str, tmp_path: Path) -> None:
    assert str(cut_off(name, tmp_path)) in error_of_cut_off(name, tmp_path)


@pytest.mark.parametrize("name", TEXTS)
def test_an_example_that_was_cut_off_is_an_error_that_names_the_line(name: str, tmp_path: Path) -> None:
    file = cut_off(name, tmp_path)
    last_line = file.read_text(encoding="utf-8").count("\n") + 1
    assert f"{file}:{last_line}: " in error_of_cut_off(name, tmp_path)


def cut_off(name: str, folder: Path) -> Path:
    """Write the first half of an example, or return what was written before."""
    file = folder / "data" / f"example{(*format_module(name).FORMAT.suffixes, format_module(name).FORMAT.member)[0]}"
    if not file.exists():
        data = write_example(name, folder / "data").read_bytes()
        file.write_bytes(data[: len(data) // 2])
    return file


def error_of_cut_off(name: str, folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_dataset(as_input(name, cut_off(name, folder)), ReadOptions(), name)
    return str(caught.value)


@pytest.mark.parametrize("name", WRITTEN)
def test_writing_the_example_and_reading_it_again_gives_the_same_tables(name: str, tmp_path: Path) -> None:
    path = as_input(name, write_example(name, tmp_path / "data"))
    dataset = read_dataset(path, ReadOptions())
    written = tmp_path / "again" if path.is_dir() else tmp_path / f"again{path.suffix}"
    write_dataset(dataset, written)
    require_same(read_dataset(written, ReadOptions()), dataset)


def require_same(one: Dataset, other: Dataset) -> None:
    """Require equal images, classes and boxes, to the last bit."""
    assert (one.images.keys, one.images.file_names, one.images.listed) == (
        other.images.keys,
        other.images.file_names,
        other.images.listed,
    )
    assert one.images.sizes.tobytes() == other.images.sizes.tobytes()
    assert (one.labels, one.units, one.format) == (other.labels, other.units, other.format)
    for column in (field.name for field in fields(BoxTable) if field.name != "source"):
        values, again = getattr(one.boxes, column), getattr(other.boxes, column)
        assert (values is None) == (again is None), column
        assert values is None or _bytes(values) == _bytes(again), column


def _bytes(values: Any) -> bytes:
    found: bytes = (values.hashes() if hasattr(values, "hashes") else values).tobytes()
    return found
