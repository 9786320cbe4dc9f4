"""Fingerprints of inputs and the signature of a result: everything that can change a number, in one line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoxTable, Words
from jaccard_eval.data.dataset import NumberedNames
from jaccard_eval.data.imagekeys import bare_names
from jaccard_eval.data.imagelabels import ClassFacts
from jaccard_eval.data.protocol import BOXES, LATER_RULES, PROTOCOLS, Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.native.matching import hash_rows
from jaccard_eval.progress import staged

# Hexadecimal digits shown: 64 bits.
FINGERPRINT_DIGITS = 16
# Fields that do not affect the metrics, only what is measured in addition.
BESIDE_METRICS = ("score", "bootstrap", "slices", "against")
# Hexadecimal digits of the digest in a short signature.
RULES_DIGITS = 8
_LONG_NUMBER = re.compile(r"(?<=[\[:])\d+\.\d{9,}(?=[:\]])")
# Of the form for people: hexadecimal digits of a digest, and characters of a list of names.
ABRIDGED_DIGITS, ABRIDGED_LIST = 8, 60


@staged("fingerprinting")
def row_hashes(boxes: BoxTable, image_names: Sequence[str], class_names: Sequence[str]) -> Words:
    """Hash each row (image, class, flags, box, score, area, shape) to 64 bits, (n,); equal rows have equal hashes."""
    return RowHasher.of(image_names, class_names)(boxes)


@dataclass(frozen=True, slots=True, eq=False)
class RowHasher:
    """Hashes rows of any number of tables whose images and classes are the same."""

    image: Words
    label: Words

    @classmethod
    def of(cls, image_names: Sequence[str], class_names: Sequence[str]) -> RowHasher:
        """Hash the names, which cost more than rows."""
        # Images and classes without boxes leave no trace, as not every format lists them.
        # Names, not rows: two files of the same data may list images and classes in any order.
        # Of images that are only numbered, each name is its own short form.
        bare = image_names if isinstance(image_names, NumberedNames) else bare_names(image_names)
        return cls(_text_hashes(bare), _text_hashes(class_names))

    def __call__(self, boxes: BoxTable) -> Words:
        """Hash each row, (n,)."""
        return _hashed(boxes, self.image, self.label)


def digest_facts(facts: ClassFacts, image_names: Sequence[str], class_names: Sequence[str]) -> str:
    """Return a short digest of what is known of classes besides boxes, in any order of images and rows."""
    names, content = RowHasher.of(image_names, class_names), hashlib.sha256()
    if facts.images is not None:
        rows = facts.images
        state = names.image[rows.image] * _PRIMES[0] + names.label[rows.label] * _PRIMES[1]
        state += rows.fact.astype(np.uint64) * _PRIMES[2]
        mix(state)
        # What is stated twice is stated once.
        content.update(np.unique(state).astype("<u8").tobytes())
    frequency = (f"{name}\0{value}" for name, value in zip(class_names, facts.frequency, strict=False))
    above = (f"{class_names[k]}\0{class_names[row]}" for k, rows in enumerate(facts.ancestors) for row in rows)
    for texts in (frequency, above):
        content.update("\n".join(["", *sorted(texts)]).encode("utf-8", "surrogatepass"))
    return content.hexdigest()[:FINGERPRINT_DIGITS]


@dataclass(frozen=True, slots=True)
class HashSum:
    """What a fingerprint needs of the hashes of rows; those of disjoint rows add up."""

    n: int = 0
    total: int = 0
    xor: int = 0

    @classmethod
    def of(cls, hashes: Words) -> HashSum:
        """Add up hashes."""
        total, xor = hashes.sum(dtype=np.uint64), np.bitwise_xor.reduce(hashes, initial=0)
        return cls(len(hashes), int(total), int(xor))

    def __add__(self, other: HashSum) -> HashSum:
        return HashSum(self.n + other.n, (self.total + other.total) % 2**64, self.xor ^ other.xor)


def _hashed(boxes: BoxTable, image: Words, label: Words) -> Words:
    flags = np.packbits([boxes.crowd, boxes.difficult, boxes.group_of, boxes.ignore], axis=0, bitorder="little")[0]
    rows = boxes.image, boxes.label, flags
    compiled = hash_rows((image, label, _PRIMES), rows, boxes.xywh, boxes.score, boxes.area)
    state = _hashed_columns(boxes, image, label, flags) if compiled is None else compiled
    # Without shapes nothing is mixed in: a fingerprint of boxes stays what it always was.
    if boxes.shapes is not None:
        state ^= boxes.shapes.hashes()
        mix(state)
    return state


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
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:RULES_DIGITS]


def digest_rows(hashes: Words | HashSum, kind: str, units: str) -> str:
    """Return the digest of hashed rows, in any order; `kind` is "gt" or "pred"."""
    # Neither depends on the order of rows; by xor alone a row and its copy would cancel.
    added = hashes if isinstance(hashes, HashSum) else HashSum.of(hashes)
    digest = hashlib.sha256(f"{kind} {units} {added.n}".encode())
    digest.update(added.total.to_bytes(8, "little"))
    digest.update(added.xor.to_bytes(8, "little"))
    return f"sha256:{digest.hexdigest()[:FINGERPRINT_DIGITS]}"


# Odd constants with bits all over the word, of the golden ratio and of xxHash: in the sum of image, class and flags
# small numbers do not cancel.
_PRIMES = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)


def mix(state: Words) -> None:
    """Spread every bit over the word, in place; the finaliser of MurmurHash3."""
    state ^= state >> np.uint64(33)
    state *= np.uint64(0xFF51AFD7ED558CCD)
    state ^= state >> np.uint64(33)


def _text_hashes(texts: Sequence[str]) -> Words:
    # One that is copied is had sooner than one that is made, and there may be millions of names.
    empty, hashes = blake2b(digest_size=8), bytearray()
    for text in texts:
        hasher = empty.copy()
        hasher.update(text.encode("utf-8", "surrogatepass"))
        hashes += hasher.digest()
    return np.frombuffer(hashes, dtype="<u8").astype(np.uint64)


def signature(protocol: Protocol, *, selection: Sequence[str], gt: str, pred: str, version: str) -> str:
    """Return the signature, e.g. ``coco|iou=0.5:0.95:0.05|ap=101|max_dets=1,10,100|...|gt=sha256:…|v=0.1.0``.

    `selection` is what was chosen of the data ("classes=dog", "score_min=0.1"), with names of users `quoted`.
    """
    areas = (f"{quoted(area.name)}[{_exact(area.low)}:{_exact(area.high)}]" for area in protocol.areas)
    parts = [
        quoted(protocol.name),
        f"iou={_spaced(protocol.iou_thresholds)}",
        f"ap={protocol.recall_points if protocol.interpolation == 'grid' else 'area'}",
        f"max_dets={','.join(map(str, protocol.max_dets)) or 'none'}",
        f"areas={','.join(areas)}",
        f"match={protocol.assignment}",
        f"ties={protocol.iou_ties}/{protocol.score_ties}",
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


def _later_rules(protocol: Protocol) -> list[str]:
    given = {name: getattr(protocol, name) for name in LATER_RULES}
    changed = {name: value for name, value in given.items() if value != LATER_RULES[name]}
    texts = {name: "+".join(map(quoted, value)) for name, value in changed.items() if isinstance(value, tuple)}
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


_IOU_TYPE = re.compile(r"\|iou_type=([^|]*)")


def overlap_name(rules: Protocol | str) -> str:
    """Return what reports call the overlap that a protocol, or the signature of a result, names."""
    if isinstance(rules, str):
        named = _IOU_TYPE.search(rules)
        kind = named[1] if named else BOXES
    else:
        kind = rules.iou_type
    return {"keypoints": "OKS", "probiou": "ProbIoU"}.get(kind, "IoU")


def with_choices(text: str, *choices: str) -> str:
    """Return a signature with further choices, before the inputs.

    Examples
    --------
    >>> with_choices("coco|iou=0.5|gt=sha256:01|pred=sha256:02|v=0.1.0", "bootstrap=1000,0.95,0")
    'coco|iou=0.5|bootstrap=1000,0.95,0|gt=sha256:01|pred=sha256:02|v=0.1.0'
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


def signature_dict(text: str) -> dict[str, Any]:
    """Return the three forms of a signature as JSON documents have them."""
    return {
        "signature": text,
        "signature_short": short_signature(text),
        "signature_fields": signature_fields(text),
    }


def short_signature(text: str) -> str:
    """Return a signature with everything but the protocol's name, the inputs and the version as one digest.

    Two short signatures are equal where the long ones are, for the digest is of all other fields.

    Examples
    --------
    >>> short_signature("coco|iou=0.5|gt=sha256:01|pred=sha256:02|v=0.1.0")
    'coco|gt=sha256:01|pred=sha256:02|v=0.1.0|rules=0538f547'
    """
    fields = signature_fields(text)
    rest = "|".join(f"{name}={value}" for name, value in fields.items() if name not in _SHORT_FIELDS)
    digest = hashlib.sha256(rest.encode("utf-8", "surrogatepass")).hexdigest()[:RULES_DIGITS]
    kept = [f"{name}={fields[name]}" for name in _SHORT_FIELDS[1:] if name in fields]
    return "|".join([fields["protocol"], *kept, f"rules={digest}"])


def abridged_signature(text: str, usual: Sequence[str] = ()) -> str:
    """Return the short signature for people: what its protocol alone does not determine, and the start of digests.

    `usual` are parts that are omitted, too.

    Examples
    --------
    >>> abridged_signature("voc2012|iou=0.375|ap=area|max_dets=none|gt=sha256:3f7aefea73ab1429|v=0.1.0")
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
    if value.startswith("sha256:"):
        return value.removeprefix("sha256:")[:ABRIDGED_DIGITS]
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
