"""Damage that knows what a file holds: JSON, tables, XML, YAML, lines, arrays; and damage to files and folders.

Each mutator takes the content, or the path, and a seeded generator. What it cannot parse is left to `damage`.
"""

import contextlib
import copy
import csv
import gzip
import io
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml
from damage import EDITS, TOKENS, damage
from hostile_strings import STRINGS

ODD_VALUES: tuple[object, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, -0.0, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**400, 1e308, 5e-324),
    *(float("nan"), float("inf"), float("-inf"), "", " ", "0", "1.0", "nan", "1e400", "a.jpg", "../../x", "dog"),
    *([], {}, [[]], [0] * 5, [1, 2, 3], [None] * 4, {"a": 1}, [1e308] * 4, [0, 0, 0, 0], [-5, -5, -5, -5]),
)
DEPTH = 2_000
JSON_LINES = (".odgt", ".jsonl", ".ndjson", ".manifest")
TABLES = (".csv", ".tsv")

Parents = list[tuple[Any, Any]]  # a container and the key or index of one of its values


def mutate_json(data: bytes, rng: random.Random) -> bytes:
    """Change one to three places of a document, or of one line of several documents."""
    try:
        document = json.loads(data)
    except ValueError:
        lines = data.split(b"\n")
        at = rng.randrange(len(lines))
        document = json.loads(lines[at])
        return b"\n".join([*lines[:at], _dumped(_changed_tree(document, rng), rng), *lines[at + 1 :]])
    return _dumped(_changed_tree(document, rng), rng)


def mutate_yaml(data: bytes, rng: random.Random) -> bytes:
    document = _changed_tree(yaml.safe_load(data), rng)
    return yaml.safe_dump(document, allow_unicode=rng.random() < 0.5).encode(errors="replace")


def _dumped(document: object, rng: random.Random) -> bytes:
    try:
        text = json.dumps(document, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, 1)))
    except RecursionError:
        text = "[" * DEPTH
    return text.encode(errors="surrogatepass")


def _changed_tree(document: Any, rng: random.Random) -> Any:
    root = [document]
    for _ in range(rng.randint(1, 3)):
        holder, key = rng.choice(_places(root))
        rng.choice(TREE_EDITS)(holder, key, rng)
        if not root:
            break
    return root[0] if root else None


def _places(root: Any) -> Parents:
    """Every value below a root, as where it is held."""
    places: Parents = []
    waiting = [root]
    while waiting:
        holder = waiting.pop()
        held = list(holder) if isinstance(holder, dict) else range(len(holder))
        places += [(holder, key) for key in held]
        waiting += [holder[key] for key in held if isinstance(holder[key], (dict, list))]
    return places


def _delete_value(holder: Any, key: Any, rng: random.Random) -> None:
    del holder[key]


def _rename_key(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder, dict):
        holder[rng.choice(("", "ID", f"{key} ", str(key).upper(), "x" * 300, *STRINGS.values()))] = holder.pop(key)
    else:
        holder[key] = {"value": holder[key]}


def _put_odd_value(holder: Any, key: Any, rng: random.Random) -> None:
    holder[key] = copy.deepcopy(rng.choice((*ODD_VALUES, rng.choice(tuple(STRINGS.values())))))


def _change_type(holder: Any, key: Any, rng: random.Random) -> None:
    """Keep what it says, in another type: a number as text, a value in a list, a table as the list of its values."""
    value = holder[key]
    if isinstance(value, dict):
        holder[key] = rng.choice((list(value.values()), list(value.items()), str(value)))
    elif isinstance(value, list):
        holder[key] = rng.choice((dict(enumerate(value)) if not isinstance(holder, list) else value[:1], str(value)))
    else:
        holder[key] = rng.choice(([value], {"value": value}, str(value), f" {value} ", bool(value)))


def _copy_from_elsewhere(holder: Any, key: Any, rng: random.Random) -> None:
    other, place = rng.choice(_places([holder]))
    holder[key] = copy.deepcopy(other[place])


def _repeat_value(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder, list):
        holder[key:key] = [copy.deepcopy(holder[key])] * rng.choice((1, 2, 50))
    else:
        holder[f"{key}2"] = copy.deepcopy(holder[key])


def _scale_number(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder[key], (int, float)):
        try:
            holder[key] *= rng.choice((-1, 0, 1e-300, 1e300, 10**30, 0.5))
        except OverflowError:
            holder[key] = 1e308


def _nest(holder: Any, key: Any, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 20, 400))):
        holder[key] = [holder[key]]


TREE_EDITS = (
    *(_put_odd_value,) * 4,
    *(_delete_value, _change_type, _scale_number) * 2,
    *(_rename_key, _copy_from_elsewhere, _repeat_value, _nest),
)


def mutate_table(data: bytes, rng: random.Random) -> bytes:
    """Change the header, the columns, the cells or the dialect of a table with a header."""
    rows = [row for row in csv.reader(io.StringIO(data.decode("utf-8", "replace").replace("\0", ""))) if row]
    for _ in range(rng.randint(1, 3)):
        at, width = rng.randrange(len(rows)), len(rows[0])
        column = rng.randrange(width)
        match rng.randrange(10):
            case 0:
                rows = [row[:column] + row[column + 1 :] for row in rows] if width > 1 else rows
            case 1:
                rows = [[*row, *row[column : column + 1]] for row in rows]
            case 2:
                rows[0][column] = rng.choice(("", "x", rows[0][-1], rows[0][column].upper(), "score", "bbox", "class"))
            case 3 | 4 | 5:
                rows[at][column:] = [_odd_text(rng), *rows[at][column + 1 :]]
            case 6:
                rows[at] = rng.choice(([], rows[at][:1], [*rows[at], *rows[at]], [""] * width))
            case 7:
                rows = rows[rng.choice((0, 1)) :] or rows
                rng.shuffle(rows)
            case 8:
                rows[at:at] = rows[at:] * rng.choice((1, 3))
            case _:
                rows = [[cell.replace(".", ",") for cell in row] for row in rows]
        rows = [row for row in rows if row] or [["image"]]
    stream = io.StringIO()
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    mark = rng.choice(",,,,;\t| ")
    csv.writer(stream, delimiter=mark, quoting=quoting, lineterminator=rng.choice(("\n", "\r\n"))).writerows(rows)
    return stream.getvalue().encode(errors="surrogatepass")


def _odd_text(rng: random.Random) -> str:
    return rng.choice(
        (*(str(value) for value in ODD_VALUES if not isinstance(value, int)), *STRINGS.values(), "9" * 30)
    )


def mutate_lines(data: bytes, rng: random.Random) -> bytes:
    """Change the columns of text lines: labels, lists of boxes, configurations."""
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        mark = b"," if lines[at].count(b",") > 2 else b" "
        words = lines[at].split(mark)
        place = rng.randrange(len(words))
        match rng.randrange(7):
            case 0:
                del words[place]
            case 1:
                words.insert(place, rng.choice(TOKENS))
            case 2 | 3:
                words[place] = rng.choice((*TOKENS, _odd_text(rng).encode(errors="surrogatepass")))
            case 4:
                rng.shuffle(words)
            case 5:
                words *= rng.choice((2, 50))
            case _:
                lines = [mark.join(line.split(mark)[:place]) for line in lines]
        lines[at] = mark.join(words)
    return rng.choice((b"\n", b"\n", b"\r\n")).join(lines)


def mutate_xml(data: bytes, rng: random.Random) -> bytes:
    root = ElementTree.fromstring(data)
    for _ in range(rng.randint(1, 3)):
        parents = [element for element in root.iter() if len(element)]
        if not parents:
            break
        parent = rng.choice(parents)
        child = rng.choice(list(parent))
        match rng.randrange(8):
            case 0:
                parent.remove(child)
            case 1:
                parent.append(copy.deepcopy(child))
            case 2:
                child.tag = rng.choice(("x", "object", "bndbox", "name", "box", "image", child.tag.upper()))
            case 3 | 4:
                child.text = _odd_text(rng)
            case 5:
                for key in rng.sample(sorted(child.attrib), min(1, len(child.attrib))):
                    child.set(rng.choice((key, "id", "x")), _odd_text(rng))
            case 6:
                child.attrib.clear()
            case _:
                for _ in range(rng.choice((1, 300))):
                    child = ElementTree.SubElement(child, "object")
    return ElementTree.tostring(root, encoding=rng.choice(("utf-8", "utf-8", "utf-16", "iso-8859-1")))


def mutate_arrays(data: bytes, rng: random.Random) -> bytes:
    """Change names, types, shapes and values in an archive of arrays."""
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for _ in range(rng.randint(1, 3)):
        if not arrays:
            break
        name = rng.choice(sorted(arrays))
        array = arrays.pop(name)
        match rng.randrange(9):
            case 0:
                pass
            case 1:
                arrays[rng.choice(("x", f"{name}_", name.upper()))] = array
            case 2:
                arrays[name] = array[: len(array) // 2] if array.ndim else array.reshape(1)
            case 3:
                arrays[name] = array.reshape(-1) if array.ndim != 1 else array.reshape(-1, 1)
            case 4:
                arrays[name] = array.astype(rng.choice(("S8", "U8", "f4", "c16", "?", "u1")), casting="unsafe")
            case 5:
                arrays[name] = array.astype(object)
            case 6:
                arrays[name] = array[..., :0] if array.ndim else array
            case _:
                array = array.copy()
                if array.size and array.dtype.kind in "iuf":
                    odd = (-1, 0, 1, 100) if array.dtype.kind == "u" else (-1, 0, 2**31 - 1, -(2**31))
                    value = rng.choice((np.nan, np.inf, -1.0, 1e308)) if array.dtype.kind == "f" else rng.choice(odd)
                    array.reshape(-1)[rng.randrange(array.size)] = np.array(value).astype(array.dtype)
                arrays[name] = array
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def empty(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.choice((b"", b"", b"\n", b"\xef\xbb\xbf", b" " * 9, b"{}", b"[]", b"null")))


def remove(path: Path, rng: random.Random) -> None:
    path.unlink()


def add_mark(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xef\xbb\xbf" * 2)) + path.read_bytes())


def end_lines_otherwise(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n"))))


def encode_half(path: Path, rng: random.Random) -> None:
    """Mixed encodings: the first half as it was, the second in another."""
    data = path.read_bytes()
    at = data.rfind(b"\n", 0, len(data) // 2 + 1) + 1
    path.write_bytes(data[:at] + "é猫".encode(rng.choice(("latin-1", "utf-8")), "ignore") + data[at:])


def link_to_copy(path: Path, rng: random.Random) -> None:
    kept = path.rename(path.with_name(f"{path.stem}-kept"))
    path.symlink_to(kept.name)


def link_nowhere(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to(rng.choice((path.name, "missing", "..")))


def become_folder(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    path.unlink()
    path.mkdir()
    (path / rng.choice((path.name, "a.txt", "a.json"))).write_bytes(content)


def become_pipe(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def compress(path: Path, rng: random.Random) -> None:
    data = gzip.compress(path.read_bytes(), mtime=0)
    path.write_bytes(data[: rng.choice((len(data), len(data) // 2))])


def swap_with_neighbour(path: Path, rng: random.Random) -> None:
    others = sorted(file for file in path.parent.iterdir() if file.is_file() and file != path) or [path]
    other = rng.choice(others)
    own, foreign = path.read_bytes(), other.read_bytes()
    path.write_bytes(foreign)
    other.write_bytes(own)


def repeat_under_another_name(path: Path, rng: random.Random) -> None:
    """A second file of the same stem, case or content next to it, or below it."""
    names = (path.stem + ".JPG", path.name.upper(), f"{path.name}.bak", f".{path.name}", f"sub/{path.name}", "é猫.txt")
    names += (os.fsdecode(b"\xff\xfe" + path.suffix.encode()), f"a\nb{path.suffix}", f"classes{path.suffix}")
    target = path.parent / rng.choice(names)
    target.parent.mkdir(exist_ok=True)
    if not target.exists():
        shutil.copyfile(path, target)


Content = Callable[[bytes, random.Random], bytes]
FILE_MUTATORS: tuple[Callable[[Path, random.Random], None], ...] = (
    *(empty, remove, add_mark, end_lines_otherwise, encode_half, link_to_copy, link_nowhere),
    *(become_folder, become_pipe, compress, swap_with_neighbour, repeat_under_another_name),
)
BY_SUFFIX: dict[str, Content] = {
    ".json": mutate_json,
    **dict.fromkeys(JSON_LINES, mutate_json),
    **dict.fromkeys(TABLES, mutate_table),
    **dict.fromkeys((".yaml", ".yml"), mutate_yaml),
    **dict.fromkeys((".txt", ".toml"), mutate_lines),
    ".xml": mutate_xml,
    ".npz": mutate_arrays,
}


def mutate(path: Path, rng: random.Random) -> None:
    """Damage one file: mostly with knowledge of its format, else its bytes, else the file as such."""
    if not path.is_file() or path.is_symlink():
        return
    kind = rng.random()
    if kind < 0.2:
        rng.choice(FILE_MUTATORS)(path, rng)
        return
    data = path.read_bytes()
    known = BY_SUFFIX.get(path.suffix)
    broken = None
    if known is not None and kind > 0.45:
        with contextlib.suppress(Exception):  # damaged before: the parser may raise anything
            broken = known(data, rng)
    path.write_bytes(damage(data, rng, EDITS) if broken is None else broken)
