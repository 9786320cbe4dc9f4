"""CrowdHuman's annotations and the detections of CrowdDet: JSON lines (.odgt), one per image.

The full boxes of persons count, not their visible parts or heads. Whatever else is annotated (masks, persons marked
ignore) absorbs predictions, as in the benchmark: it is read as a crowd of persons.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import RecordCollector, line_records
from jaccard_eval.text import printable

FORMAT = Format(
    name="crowdhuman",
    summary="CrowdHuman .odgt: JSON lines with the full boxes of persons, or with detections",
    source="https://www.crowdhuman.org/download.html and lib/evaluate of https://github.com/Purkialo/CrowdDet",
    example='{"ID": "273271,c9db000d5146c15", "gtboxes": [{"tag": "person", "fbox": [10, 20, 100, 200], '
    '"vbox": [10, 20, 90, 180], "hbox": [30, 20, 20, 25], "extra": {"box_id": 0, "occ": 0}, '
    '"head_attr": {"ignore": 0}}]}\n',
    carries=("images", "sizes", "scores", "crowd"),
    suffixes=(".odgt", ".jsonl", ".json"),
)

_IMAGE = "ID"
_TRUTHS, _DETECTIONS = "gtboxes", "dtboxes"
_PERSON = "person"


def looks_like(peek: Peek) -> Likeness | None:
    """Return how sure it is that the lines of a file are images with the boxes of CrowdHuman."""
    keys = peek.top_keys
    return Likeness.NAMED if _IMAGE in keys and not keys.isdisjoint((_TRUTHS, _DETECTIONS)) else None


def benchmark(peek: Peek) -> str:
    """Return the protocol where the first line has the parts and the tags of CrowdHuman."""
    line = peek.lines[0]
    return "crowdhuman" if all(f'"{key}"' in line for key in (_TRUTHS, "tag", "fbox", "vbox")) else ""


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images and boxes of the lines to the draft."""
    # CrowdDet dumps what it found together with the ground truth: each side reads its own.
    wanted, other = (_TRUTHS, _DETECTIONS) if options.role == "gt" else (_DETECTIONS, _TRUTHS)
    collector = RecordCollector(draft)
    counts: Counter[str] = Counter()
    for line in line_records(path, files.read_text(path), draft):
        image = line.text(_IMAGE)
        collector.add_image(image, size=line.size())
        name = wanted if line.has(wanted) or not line.has(other) else other
        for box in line.records(name):
            if name == _DETECTIONS:
                collector.add_box(image, _PERSON, box.numbers("box", 4), box.where, score=box.optional("score"))
            elif box.has("fbox"):
                tag = box.text("tag")
                if box.has("vbox"):
                    draft.usual_protocol = "crowdhuman"
                is_ignored = box.has("extra") and box.record("extra").optional("ignore", 0) != 0
                if tag != _PERSON or is_ignored:
                    counts["marked ignore" if tag == _PERSON else f"of tag {printable(tag)}"] += 1
                is_crowd = tag != _PERSON or is_ignored
                collector.add_box(image, _PERSON, box.numbers("fbox", 4), box.where, crowd=is_crowd)
            else:
                # CrowdDet repeats the ground truth without the names of its parts; the last number of a box is its tag.
                collector.add_box(image, _PERSON, box.numbers("box", 4), box.where, crowd=box.optional("tag", 1) != 1)
    collector.to_draft(encoding="xywh", listed=True)
    draft.mention_uncounted(counts)
