"""Answers of vision-language models: boxes or points in JSON or in tokens, somewhere in a text, one text per image.

Each way to write a box is a row of `FORMS`: a pattern, which number is which, and what the numbers are parts of; a
point is a box without a size. Texts lie in a file per image, or in the records or lines of a JSON file next to the name
of the image.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import looks_like_json_lines, parse_json, parse_json_lines
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import Record, RecordCollector
from jaccard_eval.text import pluralise, quoted_value

FORMAT = Format(
    name="vlm",
    summary="answers of vision-language models: bbox_2d, box_2d, <loc0123>, <box>, <point>; text or JSON Lines",
    source="https://github.com/QwenLM/Qwen3-VL (cookbooks, qwen-vl-finetune/tools/process_bbox.ipynb),"
    " google-gemini/cookbook, google-research/big_vision, deepseek-ai/DeepSeek-VL2, QwenLM/Qwen-VL and allenai/molmo",
    example="""{"image": "street.jpg", "response": "[{\\"box_2d\\": [100, 50, 500, 250], \\"label\\": \\"dog\\"}]"}
""",
    carries=("images", "scores"),
    suffixes=(".jsonl", ".json", ".txt", ".md"),
)

_XYXY, _YXYX, _XY, _YX = (0, 1, 2, 3), (1, 0, 3, 2), (0, 1, 0, 1), (1, 0, 1, 0)
_PIXELS_OR_THOUSANDTHS = 0.0
_PIXMO = "points"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way to write boxes.

    Parameters
    ----------
    pattern : re.Pattern
        Of a label and its numbers, as groups; or of the key of an object in JSON.
    order : tuple of int
        Where left, top, right and bottom are among four numbers, or the two of a point.
    whole : float
        What a side of the image is; 0 where the numbers are pixels or thousandths.
    shift : float
        What is added to a number, of forms that number cells.
    """

    pattern: re.Pattern[str]
    order: tuple[int, int, int, int] = _XYXY
    whole: float = 1000.0
    shift: float = 0.0

    @property
    def n_numbers(self) -> int:
        """How many numbers a box has, or a point."""
        return max(self.order) + 1


FORMS = {
    # An object is not a box: of many that are open inside each other, each would be read to the end.
    "bbox_2d": Form(pattern=pattern(r"""["']bbox_2d["']\s*:(?!\s*\{)"""), whole=_PIXELS_OR_THOUSANDTHS),
    "box_2d": Form(pattern=pattern(r"""["']box_2d["']\s*:(?!\s*\{)"""), order=_YXYX),
    # PaliGemma: <loc0100><loc0200><loc0300><loc0400> dog ; ...
    "<loc0000>": Form(
        pattern=pattern(r"(?P<numbers>(?:<loc\d{4}>){4})(?:\s*<seg\d{3}>)*\s*(?P<label>[^<;\n]*)"),
        order=_YXYX, whole=1024.0,
    ),
    # Florence-2: dog<loc_100><loc_200><loc_300><loc_400>, whose 1,000 cells are meant by their centres
    "<loc_0>": Form(
        pattern=pattern(r"(?:^|(?<=[>\n]))(?P<label>[^<>\n]+)(?P<numbers>(?:<loc_\d+>){4,})"), shift=0.5
    ),
    # Qwen-VL and InternVL: <ref>dog</ref><box>(1,2),(3,4)</box>, <box>[[1, 2, 3, 4]]</box>
    "<box>": Form(
        pattern=pattern(
            r"<ref>(?P<label>[^<>]*)</ref>\s*(?P<numbers>(?:<box>[-+.\d,()\[\]\s]*</box>\s*)+)"
        )
    ),
    "<|box_start|>": Form(
        pattern=pattern(
            r"<\|object_ref_start\|>(?P<label>[^<>]*)<\|object_ref_end\|>\s*"
            r"(?P<numbers>(?:<\|box_start\|>[-+.\d,()\[\]\s]*<\|box_end\|>\s*)+)"
        )
    ),
    "<|det|>": Form(
        pattern=pattern(r"<\|ref\|>(?P<label>[^<>]*)<\|/ref\|>\s*<\|det\|>\s*(?P<numbers>[-+.\d,()\[\]\s]*)<\|/det\|>"),
        whole=999.0,
    ),
    "point_2d": Form(pattern=pattern(r"""["']point_2d["']\s*:(?!\s*\{)"""), order=_XY, whole=_PIXELS_OR_THOUSANDTHS),
    # Gemini: {"point": [y, x], "label": "dog"}
    "point": Form(pattern=pattern(r"""["']point["']\s*:(?!\s*\{)"""), order=_YX),
    # PixMo, from which Molmo learnt, in per cent: {"image_url": ..., "label": "dogs", "points": [{"x": 1.0, "y": 2.0}]}
    _PIXMO: Form(pattern=pattern(r"""["']points["']\s*:\s*(?=\[\s*(?:\]|\{\s*"[xy]"))"""), order=_XY, whole=100.0),
    # Molmo, in per cent: <point x="1.0" y="2.0" alt="dog">dog</point>, <points x1="1.0" y1="2.0" x2=... >dogs</points>
    "<point>": Form(
        pattern=pattern(r"""<points?(?P<numbers>(?:\s+[xy]\d*="\s*[-+.\d]+\s*")+)[^<>]*>(?P<label>[^<>]*)</points?>"""),
        order=_XY, whole=100.0,
    ),
}  # fmt: skip
_MARK = pattern(
    r"""\\?["'](?:bbox_2d|box_2d|point_2d)\\?["']\s*:|\\?["']point\\?["']\s*:\s*\[[\d.,\s]*\]\s*,\s*\\?["']label|"""
    r""""image_url"\s*:[^{}]*"points"\s*:\s*\[\s*\{\s*"[xy]"\s*:|"""  # without, points are of polygons, as VoTT's
    r"""<points?\s+x\d*=|(?:<loc\d{4}>){4}|(?:<loc_\d+>){4}|</ref>\s*<box>|<\|box_start\|>|<\|det\|>"""
)
# Each mark has one of these: to find none takes a hundredth of the time.
_MARKED = ("box_2d", "point", "<loc", "<box>", "<|box_start|>", "<|det|>")
_LONGEST_WORD = 16  # that JSON may be cut off in: -Infinity, \ud83d\ude00
_NUMBER = pattern(r"[-+]?\d+(?:\.\d+)?")
# What is left of an answer where an object has no end, or a box has no label.
_REST = pattern(
    r"""\{[^{}]*$|["'](?:b?box_2d|point_2d|point)["']\s*:[^{}]*\}?|<points?\s[^<]*|(?:<loc_?\d+>)+|<box>\s*[\[(][^<]*|"""
    r"""<\|(?:box_start|det)\|>\s*[\[(][^<]*"""
)
_IMAGE = (
    "custom_id",
    "image",
    "image_path",
    "image_file",
    "file_name",
    "filename",
    "img",
    "img_path",
    "file",
    "path",
    "images",
    "image_id",
    "image_url",
)
_SAID = (
    "response",
    "answer",
    "output",
    "prediction",
    "generated_text",
    "raw_response",
    "completion",
    "text",
    "content",
    "raw_text",
    "raw_output",
    "raw",
    "result",
    "choices",
    "candidates",
)
_ASKED = frozenset(  # what a model was asked
    {"prompt", "question", "instruction", "query", "messages", "conversations", "system", "input"}
)
_TEXT = {
    "pred": _SAID,
    "gt": ("ground_truth", "gt", "solution", "target", "labels", "label", "suffix", *_SAID),
}  # fmt: skip
_LABELS = ("label", "name", "class", "category", "object", "text_content", "sub_label")
_SCORES = ("score", "confidence")
_UNITS_OF = (("qwen2.5", "px"), ("qwen2_5", "px"), ("qwen25", "px"), ("qwen3", "norm"))  # by the name of a model


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a text by the ways to write boxes that these models have, and a folder by its texts."""
    if not peek.is_folder:
        return Likeness.NAMED if _is_marked(peek.text) else None
    found = peek.first_files(reads_name)
    marked = [file for file in found if _is_marked(file.text)]
    return Likeness.NAMED if marked and len(marked) >= (len(found) + 1) // 2 else None


def _is_marked(text: str) -> bool:
    return any(part in text for part in _MARKED) and _MARK.search(text) is not None


def reads_name(name: str) -> bool:
    """Whether a file in a folder may be the answer for an image."""
    return name.lower().endswith(FORMAT.suffixes) and not name.startswith(".")


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a model answered about an image."""

    image: str
    text: str
    where: Where
    model: str = ""


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of answers to the draft."""
    found = {"": path}
    if files.is_folder(path):
        found = {name: path / name for name in files.list_tree(path, draft.findings) if reads_name(name)}
        if not found:
            detail = f"no {FORMAT.suffixes[0]} files, nor {', '.join(FORMAT.suffixes[1:])}"
            raise DataError.single("labels-missing", Where(str(path)), detail, fix="Pass the folder of the answers.")
    answers = [
        answer
        for name, file, text in files.read_each(
            found, lambda file: files.read_text(file, empty_ok=True), draft.findings
        )
        for answer in _answers(Path(name or file.name).with_suffix("").as_posix(), file, text, options.role, draft)
    ]
    collector = RecordCollector(draft)
    for image in dict.fromkeys(answer.image for answer in answers):
        collector.add_image(image)
    used = {name for answer in answers for name, form in FORMS.items() if form.pattern.search(answer.text)}
    # Of answers in fractions, which prompts may ask for, no number is above 1.
    largest = max((number for answer in answers for number in _numbers_of(answer.text)), default=0.0)
    whole = 1.0 if 0.0 < largest <= 1.0 else 0.0
    units = "norm" if whole and options.units is None else _units(used, answers, largest, Where(str(path)), options)
    if options.role == "gt" and any(FORMS[name].n_numbers == 2 for name in used):
        draft.usual_protocol = "points"
    for answer in answers:
        _add_answer(collector, answer, draft, units, whole)
    collector.to_draft(encoding="xyxy", units=units, listed=True)


def _numbers_of(text: str) -> Iterator[float]:
    """Yield the numbers of boxes that objects in JSON have."""
    for name in (name for name, form in FORMS.items() if not form.pattern.groups and name != _PIXMO):
        for found in FORMS[name].pattern.finditer(text):
            numbers = text[found.end() : found.end() + 400].partition("}")[0].partition('"')[0]
            yield from (abs(float(number)) for number in _NUMBER.findall(numbers))


def _units(used: set[str], answers: Sequence[_Answer], largest: float, where: Where, options: ReadOptions) -> str:
    """Return the units of what is read; where nothing shows those of ``bbox_2d``, an error asks for them."""
    if len(used) > 1:
        detail = f"boxes are written as {' and as '.join(sorted(used))}"
        raise DataError.single("layout", where, detail, fix="Pass the answers of one model.")
    (name,) = used or {""}
    if options.units is None and name in ("box_2d", "point") and largest > FORMS[name].whole:
        detail = f"{name} has numbers up to {largest:g}, above the thousandths that {name} counts"
        raise DataError.single("layout", where, detail, fix=Fix.of_side(options.role, "Pass {units}.", units="px"))
    if options.units is not None or not used or FORMS[name].whole != _PIXELS_OR_THOUSANDTHS:
        return options.units or "norm"
    named = {units for answer in answers for name, units in _UNITS_OF if name in answer.model.lower()}
    if len(named) == 1:
        return named.pop()
    if largest > FORMS["box_2d"].whole:
        return "px"
    words = "Pass {units} for what the model returns: norm for thousandths, px for pixels."
    detail = (
        f"{name} has numbers up to {largest:g}: pixels, as Qwen2.5-VL writes them (of the image as it was resized for"
        " it), or thousandths of the image, as Qwen3-VL does"
    )
    raise DataError.single("layout", where, detail, fix=Fix.of_side(options.role, words, units=None))


def _answers(name: str, file: Path, text: str, role: str, draft: Draft) -> Iterator[_Answer]:
    """Yield the answers of a file: of its records or lines if these name images, else the whole of it."""
    where = Where(str(file))
    value: Any = None
    is_lines = file.suffix.lower() == FORMAT.suffixes[0]
    if not is_lines and looks_like_json_lines(text):
        log = FindingLog()  # an answer may begin with an object and go on with words
        is_lines = all(isinstance(row, dict) and _image_of(row) for _, row in parse_json_lines(file, text, log))
        is_lines = is_lines and not log.has_errors
    if is_lines:
        rows = [(replace(where, line=line), row) for line, row in parse_json_lines(file, text, draft.findings)]
    else:
        with suppress(DataError):  # a text that is not JSON is an answer by itself
            value = parse_json(file, text) if text.lstrip()[:1] in ("{", "[") else None
        if isinstance(value, dict) and not _image_of(value) and not {*FORMS, *_SAID} & {*value}:
            by_image = {key: inner for key, inner in value.items() if isinstance(inner, str | list | dict)}
            if any(_MARK.search(_text_of(inner)) for inner in by_image.values()):
                for image, inner in by_image.items():
                    yield _Answer(image, _text_of(inner), replace(where, record=image))
                return
        rows = (
            [(replace(where, record=f"[{at}]"), row) for at, row in enumerate(value)] if isinstance(value, list) else []
        )
        rows = [(where, value)] if isinstance(value, dict) else rows
    if not any(isinstance(row, dict) and _image_of(row) for _, row in rows):
        yield _Answer(name, text if value is None else _text_of(value), where)
        return
    for place, row in rows:
        image = _image_of(row) if isinstance(row, dict) else ""
        if not image:
            draft.findings.error("field-missing", place, "names no image", fix="Write the image next to its answer.")
            continue
        if _PIXMO in row and "label" in row:
            record = {key: row[key] for key in ("label", _PIXMO)}
            yield _Answer(image, json.dumps(record, ensure_ascii=False), replace(place, field=_PIXMO))
            continue
        asked = [key for key in _TEXT[role] if key in row]
        others = [key for key in row if key not in {*_IMAGE, *_TEXT["gt"], *_TEXT["pred"], *_ASKED}]
        key = next((key for key in (*asked, *others) if _MARK.search(_text_of(row[key]))), (*asked, "")[0])
        yield _Answer(image, _text_of(row.get(key, "")), replace(place, field=key or None), str(row.get("model", "")))


def _text_of(value: Any) -> str:
    """Return an answer as a text: the texts inside it that have boxes, as interfaces wrap them, or all of it."""
    texts = [text for text in _texts(value) if _MARK.search(text)]
    return "\n".join(texts) if texts else json.dumps(value, ensure_ascii=False)


def _texts(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | dict):
            stack += reversed([*(value.values() if isinstance(value, dict) else value)])


def _image_of(row: dict[str, Any]) -> str:
    for key in _IMAGE:
        value = row.get(key)
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        value = value.get("path") if isinstance(value, dict) else value
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value)
    return ""


def _objects(text: str, key: re.Pattern[str]) -> Iterator[tuple[int, int, Any]]:
    """Yield where each object with a key begins and ends, with what it holds; the object alone must be JSON."""
    end = floor = 0
    for found in key.finditer(text):
        if found.start() < end:
            continue
        depth, start = 0, found.start() - 1
        end, floor = max(end, floor), found.end()
        while start >= end and (text[start] != "{" or depth):
            depth += (text[start] == "}") - (text[start] == "{")
            start -= 1
        if start < end:
            continue
        decoded = _decoded(text, start)
        if decoded is not None:
            value, end = decoded
            yield start, end, value


def _decoded(text: str, start: int) -> tuple[Any, int] | None:
    """Return the value that begins in a text, and where it ends; None of what is not JSON."""
    size = 256
    while True:
        # In pieces: where there is no JSON, the error counts the lines of all that it was given.
        piece = text[start : start + size]
        try:
            value, end = json.JSONDecoder().raw_decode(piece)
        except json.JSONDecodeError as error:
            is_cut = error.pos > len(piece) - _LONGEST_WORD or error.msg.startswith("Unterminated")
            if not is_cut or start + size >= len(text):
                return None
            size *= 8
        except (ValueError, RecursionError):
            return None
        else:
            return value, start + end


def _add_answer(collector: RecordCollector, answer: _Answer, draft: Draft, units: str, whole: float) -> None:
    n_before, rest = collector.n_boxes, answer.text
    for name, form in FORMS.items():
        scale = 1.0 if units == "px" else whole or form.whole or FORMS["box_2d"].whole
        found: list[tuple[str, float, list[Any]]] = []
        if form.pattern.groups:
            rest = form.pattern.sub(" ", rest)
            for match in form.pattern.finditer(answer.text):
                numbers = [float(number) for number in _NUMBER.findall(_plain(match["numbers"]))]
                n = form.n_numbers
                if len(numbers) % n or not numbers:
                    of_one = f"a {'box' if n > 2 else 'point'} has {n}"
                    detail = f"{quoted_value(match['numbers'])} has {len(numbers)} numbers; {of_one}"
                    draft.findings.error("bbox-length", answer.where, detail, fix="Ask the model again, or drop it.")
                    continue
                if not match["label"].strip():
                    draft.findings.error("field-missing", answer.where, "a box has no label", fix="Ask for labels.")
                boxes = [numbers[row : row + n] for row in range(0, len(numbers), n)]
                found.append((match["label"], math.nan, boxes))
        else:
            objects = [*_objects(rest, form.pattern)]
            for at, (_, _, value) in enumerate(objects):
                record = Record.of(
                    value, replace(answer.where, record=f"{answer.where.record or ''}{name}[{at}]"), draft.findings
                )
                if value[name] in (None, []):
                    continue  # so models write that there is none
                found.append(_labelled(record, name, form.n_numbers))
            edges = [0, *(edge for start, end, _ in objects for edge in (start, end)), len(rest)]
            rest = " ".join(rest[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
        for label, score, boxes in found:
            for box in boxes:
                coords = [(box[side] + form.shift) / scale for side in form.order]
                collector.add_box(answer.image, label.strip(), coords, answer.where, score=score)
    _report_rest(answer, rest, draft, collector.n_boxes - n_before)


def _labelled(record: Record, name: str, n: int) -> tuple[str, float, list[Any]]:
    """Return label, score and boxes of an object; its only text is its label under any name."""
    texts = [key for key, value in record.values.items() if isinstance(value, str)]
    key = next((key for key in _LABELS if record.has(key)), texts[0] if len(texts) == 1 else _LABELS[0])
    score = record.optional(next((key for key in _SCORES if record.has(key)), _SCORES[0]))
    value = record.values.get(name)
    if name == _PIXMO:
        return record.text(key), score, [[point.number(axis) for axis in "xy"] for point in record.records(name)]
    is_nested = isinstance(value, list) and bool(value) and isinstance(value[0], list)
    holder = record.entries(name) if is_nested else record
    boxes = [holder.numbers(field, n) for field in (holder.values if is_nested else (name,))]
    return record.text(key), score, boxes


def _plain(numbers: str) -> str:
    """Return numbers without the signs between them that could be read as theirs."""
    return re.sub(r"<\|[a-z_/]+\|>|loc_?|</?box>|[xy]\d*=", " ", numbers)


def _report_rest(answer: _Answer, rest: str, draft: Draft, n_boxes: int) -> None:
    """Report boxes that could not be read: those that the answer is cut off in, or without a label; and no boxes."""
    left = [found.group() for found in _REST.finditer(rest)]
    is_cut = bool(left) and rest.rstrip().endswith(left[-1].rstrip()) and not left[-1].rstrip().endswith("}")
    for text in left[: len(left) - is_cut]:
        detail = f"{quoted_value(text[:40])} is not a box with a label, or not an object in JSON"
        draft.findings.error("json-syntax", answer.where, detail, fix="Correct it, or drop it.")
    if is_cut:
        detail = (
            f"the answer is cut off in an object that does not end, {quoted_value(left[-1][:40])}; read before it:"
            f" {pluralise(n_boxes, 'box', 'boxes')}"
        )
        fix = "Ask again with more tokens for the answer."
        draft.findings.warning("record-skipped", answer.where, detail, fix=fix)
    elif not n_boxes and not left and answer.text.strip() not in ("", "[]", "```json\n[]\n```"):
        detail = f"the answer for {quoted_value(answer.image)} has no box; it counts as an image without objects"
        draft.findings.note("record-skipped", answer.where, detail)
