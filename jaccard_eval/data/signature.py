"""Fingerprints of inputs and the signature of a result: everything that can change a number, in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b, sha256
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FLAGS, Boxes, BoxTable, RowArray, Words
from jaccard_eval.data.dataset import ClassFacts, NumberedNames
from jaccard_eval.data.imagekeys import bare_names
from jaccard_eval.data.known_protocols import measure_name
from jaccard_eval.data.protocol import BOXES, LATER_RULES, PROTOCOLS, Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.native.calls import digest_rows, hash_rows, pack_rows
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import staged

# Hexadecimal digits of a fingerprint, and its name in RFC 6920: the first 128 bits of SHA-256. Of fewer, two inputs
# with the same are found by trying: of 64 bits by four thousand million.
FINGERPRINT_DIGITS = 32
FINGERPRINT = "sha-256-128:"
Column = tuple[npt.NDArray[Any], npt.NDArray[np.int64]]  # values, and where those of each row begin, and the end
ROW_BYTES, IMAGE_BYTES = 16, 32  # of a digest
BLOCK_ROWS = 1 << 14  # of boxes whose content is put together at a time
# Fields that do not affect the metrics, only what is measured in addition.
BESIDE_METRICS = ("score", "bootstrap", "slices", "against")
ORDERS = ("ties", "ties_at_cap")  # of equal scores, where these decide: of predictions, as `pred` is
# Hexadecimal digits of the digest in a short signature.
RULES_DIGITS = 8
_LONG_NUMBER = pattern(r"(?<=[\[:])\d+\.\d{9,}(?=[:\]])")
# Of the form for people: hexadecimal digits of a digest, and characters of a list of names.
ABRIDGED_DIGITS, ABRIDGED_LIST = 8, 60


@dataclass(frozen=True, slots=True, eq=False)
class RowHasher:
    """Hashes rows of any number of tables whose images and classes are the same; by names, which have any order.

    A hash of 64 bits finds equal rows and puts the rows of an image in order. Whoever wants to can make two rows that
    have the same: what proves that inputs are equal is `ImageDigests`.
    """

    image: Words  # digests of names, (n, 2)
    label: Words

    @classmethod
    def of(cls, image_names: Sequence[str], class_names: Sequence[str]) -> RowHasher:
        """Hash the names, which cost more than rows."""
        # Images and classes without boxes leave no trace, as not every format lists them.
        # Names, not rows: two files of the same data may list images and classes in any order.
        # Of images that are only numbered, each name is its own short form.
        bare = image_names if isinstance(image_names, NumberedNames) else bare_names(image_names)
        return cls(_text_digests(bare), _text_digests(class_names))

    def __call__(self, boxes: BoxTable) -> Words:
        """Hash each row, (n,)."""
        return self.with_shapes(boxes)[0]

    def with_shapes(self, boxes: BoxTable) -> tuple[Words, Words]:
        """Hash each row, (n,), and return the words that its shape has by itself, (n, k); equal rows have the same."""
        hashes = _hashed(boxes, np.ascontiguousarray(self.image[:, 0]), np.ascontiguousarray(self.label[:, 0]))
        if boxes.shapes is None:
            return hashes, np.zeros((len(boxes), 0), dtype=np.uint64)
        shapes = boxes.shapes.hashes()
        shapes = shapes[:, np.newaxis] if shapes.ndim == 1 else shapes
        for words in shapes.T:
            hashes ^= words
            mix(hashes)
        return hashes, shapes


@staged("fingerprinting")
def fingerprint(
    boxes: Boxes,
    names: tuple[Sequence[str], Sequence[str]],
    kind: str,
    units: str,
    hasher: RowHasher | None = None,
) -> tuple[Words | None, str]:
    """Return a hash of each row, (n,), and the fingerprint of all.

    There are no hashes, (0,), where no two rows of an image are alike, and None of boxes that lie on the disk by image.
    `names` are those of images and of classes, `kind` is "gt" or "pred"; a `hasher` of these names is made if there is
    none.
    """
    hasher = hasher or RowHasher.of(*names)
    counts = boxes.counts("label", len(names[1])).tolist()
    classes = sorted({name for name, n in zip(names[1], counts, strict=False) if n})
    rank = {name: np.uint64(place) for place, name in enumerate(classes)}
    ranks = np.array([rank.get(name, 0) for name in names[1]], dtype=np.uint64)
    digests, hashes = ImageDigests(hasher.image), None
    for table in boxes.tables():
        hashes, shapes = hasher.with_shapes(table)
        if not digests.add(table.image, hashes, partial(row_words, table, label_words(table, ranks), shapes)):
            hashes = np.zeros(0, dtype=np.uint64)
    digest = digests.digest([kind, units, len(boxes), classes])
    return hashes if isinstance(boxes, BoxTable) else None, f"{FINGERPRINT}{digest}"


def row_words(boxes: BoxTable, first: Words, shapes: Words, rows: npt.NDArray[np.int64]) -> Words:
    """Return all that some rows hold as whole words, (r, k): the `first` of each, box, score, area and shape."""
    words = np.empty((len(rows), 6 + first.shape[1] + shapes.shape[1]), dtype=np.uint64)
    if not pack_rows(rows, boxes.xywh, boxes.score, boxes.area, words):
        scores = 0.0 if boxes.score is None else boxes.score[rows]
        for place, column in enumerate((*boxes.xywh.take(rows, axis=0).T, scores, boxes.area[rows])):
            # Adding 0.0 makes -0.0 and 0.0 alike.
            words[:, place] = np.asarray(column + 0.0).view(np.uint64)
    words[:, 6:] = np.hstack((first[rows], shapes[rows])) if shapes.shape[1] else first[rows]
    return words.astype("<u8", copy=False)


def label_words(boxes: BoxTable, ranks: Words) -> Words:
    """Return the rank of the class of each box, above its flags, (n, 1)."""
    words: Words = ((ranks << np.uint64(8))[boxes.label] | packed_flags(boxes))[:, np.newaxis]
    return words


def packed_flags(boxes: BoxTable) -> npt.NDArray[np.uint8]:
    """Return the flags of each box as bits, (n,)."""
    flags = np.zeros(len(boxes), dtype=np.uint8)
    for bit, name in enumerate(FLAGS):
        flags |= getattr(boxes, name).view(np.uint8) << np.uint8(bit)
    return flags


class ImageDigests:
    """SHA-256 of the rows of each image in an order that no file decides, and of all images.

    A sum of hashes of rows would need no order, but can be forged: of enough rows, some add up to any sum. Parts hand
    on what whole images have.
    """

    def __init__(self, image_names: Words) -> None:
        self._names = image_names.astype("<u8", copy=False)  # digests of them, (n, 2)
        self._digests = bytearray()

    def add(self, image: RowArray, hashes: Words, words_of: Callable[[npt.NDArray[np.int64]], Words]) -> bool:
        """Add the rows of whole images: their image and hash, (n,), and what gives the words of some rows, (r, k).

        Return whether two rows of an image seem alike.
        """
        if not len(image):
            return False
        order, has_alike = _canonical_order(image, hashes, words_of)
        ordered = image[order]
        first = np.append(0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
        names = self._names[ordered[first]]
        # A block of images at a time stays in the cache of the processor.
        cuts = [*np.flatnonzero(np.diff(first // BLOCK_ROWS, prepend=-1)).tolist(), len(first)]
        first = np.append(first, len(order))
        for low, high in pairwise(cuts):
            words = words_of(order[first[low] : first[high]])
            bounds = (first[low : high + 1] - first[low]) * words.shape[1]
            self._digests += _digests_of(names[low:high], [(words, bounds)], IMAGE_BYTES)
        return has_alike

    def digest(self, head: Sequence[Any]) -> str:
        """Return the digest of all images, in the order of their digests, below a head of plain values."""
        content = sha256(json.dumps(head).encode())
        content.update(np.sort(np.frombuffer(self._digests, dtype="S32")).tobytes() if self._digests else b"")
        return content.hexdigest()[:FINGERPRINT_DIGITS]


def _canonical_order(
    image: RowArray, hashes: Words, words_of: Callable[[npt.NDArray[np.int64]], Words]
) -> tuple[npt.NDArray[np.int64], bool]:
    """Return the order of rows by image, hash and content, (n,), and whether two of an image seem alike."""
    # One sort of whole numbers that hold image, hash and row takes a fraction of a stable sort by each.
    n_row_bits, n_image_bits = (max(int(most), 1).bit_length() for most in (len(image) - 1, image.max()))
    key = hashes >> np.uint64(n_row_bits + n_image_bits)
    key <<= np.uint64(n_row_bits)
    key |= image.astype(np.uint64) << np.uint64(64 - n_image_bits)
    key |= np.arange(len(image), dtype=np.uint64)
    key.sort()
    order = (key & np.uint64((1 << n_row_bits) - 1)).view(np.int64)
    key >>= np.uint64(n_row_bits)
    same = key[1:] == key[:-1]
    if has_alike := bool(same.any()):
        alike = np.union1d(np.flatnonzero(same), np.flatnonzero(same) + 1)
        rows = order[alike]
        order[alike] = rows[np.lexsort((*words_of(rows).T, hashes[rows], key[alike]))]
    return order, has_alike


def digest_each(*columns: npt.NDArray[Any] | Column) -> Words:
    """Return 128 bits of the SHA-256 of each row, (n, 2).

    A column has a row each, or the numbers of all rows and where those of each begin, and the end.
    """
    given = [
        column if isinstance(column, tuple) else (column, np.arange(len(column) + 1) * int(np.prod(column.shape[1:])))
        for column in columns
    ]
    counts = np.stack([np.diff(bounds) for _, bounds in given], axis=1).astype("<i8")
    return np.frombuffer(_digests_of(counts, given, ROW_BYTES), dtype="<u8").astype(np.uint64).reshape(-1, 2)


def _digests_of(head: npt.NDArray[Any], columns: Sequence[Column], n_bytes: int) -> bytes:
    """Return the first bytes of the SHA-256 of each row of a head (n, h) and what columns have behind it."""
    compiled = digest_rows(head, columns, n_bytes)
    if compiled is not None:
        return compiled
    given = [(memoryview(head.tobytes()), range(0, head.nbytes + 1, head.itemsize * head.shape[1]))]
    for values, bounds in columns:
        signless = values + 0.0 if values.dtype.kind == "f" else values  # -0.0 is 0.0
        given.append((memoryview(signless.tobytes()), (bounds * values.itemsize).tolist()))
    digests = bytearray()
    for row in range(len(head)):
        content = sha256()
        for data, starts in given:
            content.update(data[starts[row] : starts[row + 1]])
        digests += content.digest()[:n_bytes]
    return bytes(digests)


def digest_facts(facts: ClassFacts, image_names: Sequence[str], class_names: Sequence[str]) -> str:
    """Return a digest of what is known of classes besides boxes, in any order of images and rows."""
    digests, classes = ImageDigests(_text_digests(bare_names(image_names))), list[str]()
    if facts.images is not None and len(facts.images):
        rows = facts.images
        classes = sorted({class_names[label] for label in np.unique(rows.label)})
        rank = {name: place for place, name in enumerate(classes)}
        label = np.array([rank.get(name, 0) for name in class_names], dtype=np.int64)[rows.label]
        # What is stated twice is stated once.
        n_words = len(classes) << 8
        stated = np.sort(rows.image.astype(np.int64) * n_words + (label << 8) + rows.fact)
        image, word = np.divmod(stated[np.diff(stated, prepend=-1) > 0], n_words)
        words = word.astype("<u8")
        digests.add(image.astype(np.int32), words << np.uint64(32), lambda rows: words[rows, np.newaxis])
    frequency = sorted(zip(class_names, facts.frequency, strict=False))
    above = sorted((class_names[k], class_names[row]) for k, rows in enumerate(facts.ancestors) for row in rows)
    return digests.digest([facts.images is not None, classes, frequency, above])


def _hashed(boxes: BoxTable, image: Words, label: Words) -> Words:
    flags = packed_flags(boxes)
    rows = boxes.image, boxes.label, flags
    compiled = hash_rows((image, label, _PRIMES), rows, boxes.xywh, boxes.score, boxes.area)
    return _hashed_columns(boxes, image, label, flags) if compiled is None else compiled


def _hashed_columns(boxes: BoxTable, image: Words, label: Words, flags: npt.NDArray[np.uint8]) -> Words:
    score = np.zeros(len(boxes)) if boxes.score is None else boxes.score
    columns = [*boxes.xywh.T, score, boxes.area]
    state: Words = (
        image[boxes.image] * _PRIMES[0] + label[boxes.label] * _PRIMES[1] + flags.astype(np.uint64) * _PRIMES[2]
    )
    for column in columns:
        # Adding 0.0 makes -0.0 and 0.0 alike; little-endian on every machine, so that the bits are, too.
        bits = (np.ascontiguousarray(column, dtype="<f8") + 0.0).view("<u8")
        state ^= bits
        mix(state)
    return state


def digest_names(names: Sequence[str]) -> str:
    """Return a short digest of the names of images, in any order."""
    text = "\0".join(sorted(bare_names(names)))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:FINGERPRINT_DIGITS]


# Odd constants with bits all over the word, of the golden ratio and of xxHash: in the sum of image, class and flags
# small numbers do not cancel.
_PRIMES = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)


def mix(state: Words) -> None:
    """Spread every bit over the word, in place; the finaliser of MurmurHash3."""
    state ^= state >> np.uint64(33)
    state *= np.uint64(0xFF51AFD7ED558CCD)
    state ^= state >> np.uint64(33)


def _text_digests(texts: Sequence[str]) -> Words:
    """Return 128 bits of each text, (n, 2), by BLAKE2b."""
    # One that is copied is had sooner than one that is made, and there may be millions of names.
    empty, digests = blake2b(digest_size=16), bytearray()
    for text in texts:
        hasher = empty.copy()
        hasher.update(text.encode("utf-8", "surrogatepass"))
        digests += hasher.digest()
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(-1, 2)


def signature(protocol: Protocol, *, selection: Sequence[str], gt: str, pred: str, version: str) -> str:
    """Return the signature, e.g. ``coco|iou=0.5:0.95:0.05|ap=101|max_dets=1,10,100|...|gt=sha-256-128:…|v=0.1.0``.

    `selection` is what was chosen of the data ("classes=dog", "score_min=0.1"), with names of users `quoted`.
    """
    areas = (f"{quoted(area.name)}[{_exact(area.low)}:{_exact(area.high)}]" for area in protocol.areas)
    parts = [
        quoted(protocol.name),
        f"iou={_spaced(protocol.iou_thresholds)}",
        f"ap={_averaged(protocol)}",
        f"max_dets={','.join(map(str, protocol.max_dets)) or 'none'}",
        f"areas={','.join(areas)}",
        f"match={protocol.assignment}",
        f"iou_ties={protocol.iou_ties}",
        f"score_ties={protocol.score_ties}",
        f"ignored={'+'.join(protocol.ignored_flags) or 'none'}",
        f"reusable={'+'.join(protocol.reusable_flags) or 'none'}",
        f"crowd={protocol.crowd_overlap}",
        f"pixel={_exact(protocol.pixel_offset)}",
        f"epsilon={_exact(protocol.precision_epsilon)}",
        # Rules that came later are named only where they apply: signatures of the first release stay what they were.
        *(["class_agnostic"] if protocol.class_agnostic else []),
        *_later_rules(protocol),
        *_rules_of_kind(protocol),
        *selection,
        f"gt={gt}",
        f"pred={pred}",
        f"v={version}",
    ]
    return "|".join(parts)


def _averaged(protocol: Protocol) -> str:
    """Return how the area below a curve is had: by its recall values, or by name, with these where it has some."""
    if protocol.interpolation in ("grid", "area", "points", "slots", "lines", "hits"):
        return str(protocol.recall_points) if protocol.interpolation == "grid" else protocol.interpolation
    return f"{protocol.interpolation.replace(' ', '-')}-{protocol.recall_points}"


def _later_rules(protocol: Protocol) -> list[str]:
    given = {name: getattr(protocol, name) for name in LATER_RULES}
    changed = {name: value for name, value in given.items() if value != LATER_RULES[name]}
    lists = {name: map(str, value) for name, value in changed.items() if isinstance(value, tuple)}
    texts = {name: "+".join(map(quoted, values)) for name, values in lists.items()}
    # What is on or off is named where it is on.
    return [name if value is True else f"{name}={texts.get(name, value)}" for name, value in changed.items()]


def _rules_of_kind(protocol: Protocol) -> list[str]:
    kind, rules = protocol.iou_type, [] if protocol.iou_type == BOXES else [f"iou_type={quoted(protocol.iou_type)}"]
    if kind == "boundary":
        rules.append(f"dilation={_exact(protocol.dilation_ratio)}")
    if kind == "keypoints" and protocol.sigmas:
        rules.append(f"sigmas={','.join(map(_exact, protocol.sigmas))}")
    if kind == "keypoints" and protocol.oks_box_share is not None:
        rules.append(f"oks_box_share={_exact(protocol.oks_box_share)}")
    return rules


_IOU_TYPE = pattern(r"\|iou_type=([^|]*)")
_OVERLAP = pattern(r"\|overlap=([^|]*)")


def overlap_name(rules: Protocol | str) -> str:
    """Return what reports call the overlap that a protocol, or the signature of a result, names."""
    if isinstance(rules, str):
        named = _IOU_TYPE.search(rules)
        kind = named[1] if named else BOXES
        changed, usual = _OVERLAP.search(rules), PROTOCOLS.get(rules.partition("|")[0])
        by = changed[1] if changed else usual.overlap if usual else "area"
    else:
        kind, by = rules.iou_type, rules.overlap
    return measure_name(kind, by)


def with_choices(text: str, *choices: str) -> str:
    """Return a signature with further choices, before the inputs.

    Examples
    --------
    >>> with_choices("coco|iou=0.5|gt=01|pred=02|v=0.1.0", "bootstrap=1000,0.95,0")
    'coco|iou=0.5|bootstrap=1000,0.95,0|gt=01|pred=02|v=0.1.0'
    """
    rules, inputs, rest = text.partition("|gt=")
    return "|".join([rules, *choices]) + inputs + rest


def without_fields(text: str, names: Sequence[str]) -> str:
    """Return a signature without some of its fields."""
    return "|".join(part for part in text.split("|") if part.partition("=")[0] not in names)


def signature_fields(text: str) -> dict[str, str]:
    """Return the parts of a signature by name, in their order; what comes first is the protocol.

    Examples
    --------
    >>> signature_fields("coco|iou=0.5|class_agnostic|v=0.1.0")
    {'protocol': 'coco', 'iou': '0.5', 'class_agnostic': 'yes', 'v': '0.1.0'}
    """
    protocol, *parts = text.split("|")
    pairs = (part.partition("=") for part in parts)
    return {"protocol": protocol} | {name: value if equals else "yes" for name, equals, value in pairs}


def other_signatures(result: Any) -> dict[str, Any]:
    """Return the two other forms of the signature of a result, which JSON documents have besides."""
    text = result.signature
    return {"signature_short": short_signature(text), "signature_fields": signature_fields(text)}


def short_signature(text: str) -> str:
    """Return a signature with everything but the protocol's name, the inputs and the version as one digest.

    Two short signatures are equal where the long ones are, for the digest is of all other fields.

    Examples
    --------
    >>> short_signature("coco|iou=0.5|gt=01|pred=02|v=0.1.0")
    'coco|gt=01|pred=02|v=0.1.0|rules=0538f547'
    """
    fields = signature_fields(text)
    rest = "|".join(f"{name}={value}" for name, value in fields.items() if name not in _SHORT_FIELDS)
    digest = sha256(rest.encode("utf-8", "surrogatepass")).hexdigest()[:RULES_DIGITS]
    kept = [f"{name}={fields[name]}" for name in _SHORT_FIELDS[1:] if name in fields]
    return "|".join([fields["protocol"], *kept, f"rules={digest}"])


def abridged_signature(text: str, usual: Sequence[str] = ()) -> str:
    """Return the short signature for people: what its protocol alone does not determine, and the start of digests.

    `usual` are parts that are omitted, too.

    Examples
    --------
    >>> abridged_signature("voc2012|iou=0.375|ap=area|max_dets=none|gt=sha-256-128:3f7aefea73ab1429|v=0.1.0")
    'voc2012|iou=0.375|gt=3f7aefea|v=0.1.0'
    >>> abridged_signature("coco|areas=<32[0:1023.9999999999999]|v=0.1.0")
    'coco|areas=<32[0:1024]|v=0.1.0'
    """
    name, *parts = text.split("|")
    if name in PROTOCOLS:
        usual = signature(PROTOCOLS[name], selection=(), gt="", pred="", version="").split("|")
    shown = []
    for part in parts:
        if part in usual:
            continue
        key, equals, value = part.partition("=")
        if key == "areas":
            # Ranges are closed at both ends, so that an open one ends at the number before.
            value = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.12g}", value)
        shown.append(f"{key}{equals}{_abridged(value)}")
    return "|".join([name, *shown])


def _abridged(value: str) -> str:
    if value.startswith(FINGERPRINT):
        return value.removeprefix(FINGERPRINT)[:ABRIDGED_DIGITS]
    return value if len(value) <= ABRIDGED_LIST else f"{value[:ABRIDGED_LIST]}..."


_SHORT_FIELDS = ("protocol", "gt", "pred", "v")


def quoted(name: str) -> str:
    """Return a user's name without what separates the parts of a signature, percent-encoded as in a URL.

    Examples
    --------
    >>> quoted("traffic light|red, 100%")
    'traffic light%7Cred%2C 100%25'
    """
    # File names may hold lone surrogates, which strict UTF-8 refuses to encode.
    return "".join(
        c
        if c.isprintable() and c not in "%|,"
        else "".join(f"%{byte:02X}" for byte in c.encode("utf-8", "surrogatepass"))
        for c in name
    )


def _spaced(values: Sequence[float]) -> str:
    """Write thresholds as first:last:step where they are what ``numpy.linspace`` makes of it, else one by one."""
    # Compared to the last bit: what is printed as a range must give these thresholds back, not nearly these.
    if len(values) > 2 and list(values) == np.linspace(values[0], values[-1], len(values)).tolist():
        step = (values[-1] - values[0]) / (len(values) - 1)
        return f"{_exact(values[0])}:{_exact(values[-1])}:{step:.9g}"
    return ",".join(map(_exact, values))


def _exact(value: float) -> str:
    """Write a number with as many digits as distinguish it from all others."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))
