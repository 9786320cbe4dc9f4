"""One look at an input, shared by all formats, and how much the input resembles one of them."""

from __future__ import annotations

import contextlib
import enum
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path

from jaccard_eval.reading import files
from jaccard_eval.reading.json import looks_like_json_lines, record_keys
from jaccard_eval.reading.xml import root_of

FIRST = 20  # members of a folder that are looked at, folders of a level, lines of a text
LEVELS = 3  # of folders that are searched for the documents of a data set
IMAGE_FACTS = ("imagesource:", "gsd:")  # in front of the labels of DOTA: where an image is from, metres per pixel
_MOST = 0.9  # share of lines that have to fit
_SKEW = 0.25  # of the longer diagonal, by which the middles of both may differ in the outline of a word or an object

# An object with one of these keys is made of parts, and no mapping from the names of images to what they show.
_PARTS = frozenset({"images", "annotations", "shapes", "results", "predictions", "detections"})
# In addition to the documents of images several tools write one that describes the project.
PROJECT = "meta.json"
Row = Sequence[float]  # the numbers of a line


class Likeness(enum.IntEnum):
    """How surely an input is of a format: the surest format reads it, and two that are equally sure are an error.

    NAMED: the input names its format, by its first bytes, or by a key or a file name that this format alone uses.
    STRUCTURE: keys, columns, elements or lines are as the format prescribes them. CONTENT: what is there fits,
    but would fit other formats as well, as one common key or column does. SUFFIX: only the name supports it, as for
    a damaged file.
    """

    SUFFIX = 1
    CONTENT = 2
    STRUCTURE = 3
    NAMED = 4


class Kind(enum.Enum):
    """What an input holds, by its first characters; it may be damaged behind them."""

    FOLDER = enum.auto()
    EMPTY = enum.auto()  # or nothing but blanks, or not readable
    JSON_OBJECT = enum.auto()
    JSON_LIST = enum.auto()
    JSON_LINES = enum.auto()
    XML = enum.auto()
    TEXT = enum.auto()
    BINARY = enum.auto()


class Peek:
    """A look at a file or folder. What is asked for is read then, once, however many formats ask for it.

    Nothing here raises or blocks: what cannot be read is empty. No more than 64 KB of a file are read.
    """

    def __init__(self, path: Path, seen: dict[Path, Peek] | None = None) -> None:
        self.path = path
        self._seen = {path: self} if seen is None else seen

    def at(self, path: Path) -> Peek:
        """Look at another place, such as a file in this folder; all who ask for it share that look too."""
        if path not in self._seen:
            self._seen[path] = Peek(path, self._seen)
        return self._seen[path]

    @cached_property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return files.is_folder(self.path)

    @property
    def suffix(self) -> str:
        """The last suffix of its name with the dot, in lower case."""
        return self.path.suffix.lower()

    @cached_property
    def head(self) -> bytes:
        """The first 64 KB without a byte-order mark, unpacked where they are gzip; of a folder nothing."""
        return b"" if self.is_folder else files.head(self.path)

    @cached_property
    def kind(self) -> Kind:
        """What it holds, by its first characters."""
        if self.is_folder:
            return Kind.FOLDER
        start = self.head.lstrip()[:1]
        if not start:
            return Kind.EMPTY
        if start == b"{":
            return Kind.JSON_LINES if looks_like_json_lines(self.text) else Kind.JSON_OBJECT
        if start in (b"[", b"<"):
            return Kind.JSON_LIST if start == b"[" else Kind.XML
        return Kind.BINARY if b"\0" in self.head else Kind.TEXT

    @cached_property
    def is_json(self) -> bool:
        """Whether it begins as JSON does; unlike `kind` this parses nothing."""
        return self.head.lstrip()[:1] in (b"{", b"[")

    @cached_property
    def text(self) -> str:
        """The head as text, bytes that are not UTF-8 replaced."""
        return self.head.decode("utf-8", "replace")

    @cached_property
    def lines(self) -> Sequence[str]:
        """The first 20 lines of the text that are not blank."""
        lines = self.text.replace("\r", "\n").split("\n")
        return [line for line in lines if line.strip()][:FIRST]

    @cached_property
    def root(self) -> str:
        """The name of the outermost XML element; empty where there is none."""
        return root_of(self.head)

    @property
    def top_keys(self) -> frozenset[str]:
        """The keys of the outermost JSON object; of JSON Lines those of every line."""
        return self._keys[0]

    @property
    def item_keys(self) -> frozenset[str]:
        """The keys of all objects in an outermost JSON list."""
        return self._keys[1]

    @property
    def maps_images(self) -> bool:
        """Whether JSON may map the names of images to what they show, or hold a list for each."""
        return self.is_json and not self.item_keys and self.top_keys.isdisjoint(_PARTS)

    @cached_property
    def _keys(self) -> tuple[frozenset[str], frozenset[str]]:
        return record_keys(self.head) if self.is_json else (frozenset(), frozenset())

    @property
    def folders(self) -> Sequence[str]:
        """Names of the folders in a folder, sorted."""
        return self._members[0]

    @property
    def files(self) -> Sequence[str]:
        """Names of the files in a folder, sorted."""
        return self._members[1]

    @cached_property
    def _members(self) -> tuple[list[str], list[str]]:
        folders: list[str] = []
        names: list[str] = []
        if self.is_folder:
            with contextlib.suppress(OSError):
                folders, names = files.list_folder(self.path)
        return sorted(folders), sorted(names)

    @cached_property
    def _endings(self) -> frozenset[str]:
        """What stands behind the last dot of the names of files, in lower case: several formats ask each name."""
        return frozenset(name.rpartition(".")[2].lower() for name in self.files)

    def first_files(self, is_wanted: Callable[[str], bool]) -> list[Peek]:
        """Look at the first 20 files in a folder that are wanted by their names."""
        return [self.at(self.path / name) for name in islice(filter(is_wanted, self.files), FIRST)]

    def first_folders(self) -> list[Peek]:
        """Look at the first 20 folders in a folder."""
        return [self.at(self.path / name) for name in self.folders[:FIRST]]

    def documents(self, besides: Collection[str] = (), *, suffixes: tuple[str, ...] = (".json",)) -> list[Peek]:
        """Look at the first 20 JSON files of a folder, else of the folders in it or in these; of a file at itself.

        `besides` names files that are not documents of images, and with a slash folders that hold none themselves.
        """
        if not self.is_folder:
            return [self] if self.is_json else []

        def is_document(name: str) -> bool:
            return name.lower().endswith(suffixes) and not name.startswith(".") and name not in {PROJECT, *besides}

        level, endings = [self], {suffix.rpartition(".")[2] for suffix in suffixes}
        for _ in range(LEVELS):
            places = [folder for folder in level if folder is self or f"{folder.path.name}/" not in besides]
            places = [folder for folder in places if not folder._endings.isdisjoint(endings)]
            found = [document for folder in places for document in folder.first_files(is_document)][:FIRST]
            if found:
                # An image without objects is an empty list in several formats, and evidence for none of them.
                return [document for document in found if document.head.strip() != b"[]"]
            # Folders of any name are searched: a dataset may be named like what lies next to documents.
            level = [inner for folder in level for inner in folder.first_folders()][:FIRST]
        return []

    def rate_documents(
        self,
        rate: Callable[[Peek], Likeness | None],
        besides: Collection[str] = (),
        *,
        suffixes: tuple[str, ...] = (".json",),
    ) -> Likeness | None:
        """Rate a JSON file, or a folder by the level that at least half of its first documents reach."""
        found = self.documents(besides, suffixes=suffixes)
        documents = [document for document in found if document.is_json]
        levels = sorted(filter(None, map(rate, documents)), reverse=True)
        half = (len(found) + 1) // 2
        if not 0 < half <= len(levels):
            return None
        is_below = self.is_folder and found[0].path.parent != self.path
        return Likeness(min(levels[half - 1], self.rate_below(found)) if is_below else levels[half - 1])

    def rate_below(self, found: Sequence[Peek | Path]) -> Likeness:
        """Rate a format whose files are found in inner folders only, for the files at the top of a folder decide.

        Tools move what they converted to an inner folder, as Cartucho's does; texts of labels at the top that are at
        least as many are meant, and a few lists or notes are not.
        """
        n_texts = sum(map(files.is_label_name, self.files))
        return Likeness.CONTENT if n_texts and min(n_texts, FIRST) >= len(found) else Likeness.STRUCTURE

    def rate_label_files(self, is_label: Callable[[str], bool]) -> Likeness | None:
        """Rate a folder by the first lines of its first text files: most of them have to be labels."""
        found = self.first_files(lambda name: name.lower().endswith(".txt"))
        lines = [file.lines[0] for file in found if file.lines]
        return Likeness.STRUCTURE if lines and sum(map(is_label, lines)) * 2 > len(lines) else None

    def rate_class_files(self, name: re.Pattern[str]) -> Likeness | None:
        """Rate a folder by the names of its files, where a format prescribes these: a file for each class.

        Where most of its text files are called something else, they may be of another format with equal right.
        """
        n_named = sum(name.fullmatch(file) is not None for file in self.files)
        if not n_named:
            return None
        n_others = sum(files.is_label_name(file) for file in self.files) - n_named
        return Likeness.NAMED if n_named >= n_others else Likeness.STRUCTURE


def rate_keys(keys: Collection[str], required: Collection[str], optional: Collection[str]) -> Likeness | None:
    """Rate the keys of an object: it has the structure if it has all required keys, and others only if optional."""
    others = set(keys) - set(required)
    if len(keys) - len(others) < len(set(required)):
        return None
    return Likeness.STRUCTURE if others.issubset(optional) else Likeness.CONTENT


def most(rows: Iterable[Row], is_plausible: Callable[[Row], bool]) -> bool:
    """Whether most rows are plausible, and there are some.

    As lines alone would fit several formats, numbers in fixed columns must be what a format reads them as. A number
    by itself proves nothing; most lines of a file together do. A few may be damaged, which the reader reports.
    """
    found = [is_plausible(row) for row in rows]
    return bool(found) and sum(found) >= _MOST * len(found)


def is_quad(numbers: Row) -> bool:
    """Whether eight numbers are the corners of an object: convex, and nearly a parallelogram, as seen by a camera."""
    points = [*zip(numbers[::2], numbers[1::2], strict=True)]
    sides = [(x - points[at - 1][0], y - points[at - 1][1]) for at, (x, y) in enumerate(points)]
    turns = [sides[at - 1][0] * y - sides[at - 1][1] * x for at, (x, y) in enumerate(sides)]
    if not (min(turns) > 0 or max(turns) < 0):
        return False
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = points
    # Not squared, for which a damaged number is too large; a distance becomes infinite and fits nothing.
    apart = math.hypot(ax + cx - bx - dx, ay + cy - by - dy)
    return apart <= 2 * _SKEW * max(math.dist(points[0], points[2]), math.dist(points[1], points[3])) < math.inf


def read_rows(lines: Iterable[str], split: Callable[[str], list[str]]) -> list[Row]:
    """Return the numbers of the lines that have nothing else."""
    rows = []
    for line in lines:
        try:
            rows.append([*map(float, split(line))])
        except ValueError:
            continue
    return [row for row in rows if row]
