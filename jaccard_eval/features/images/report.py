"""Reports of the worst images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaccard_eval.features.images.result import TITLES, WorstImages
from jaccard_eval.report.model import Column, Gallery, Live, Note, Rows, Section, Table, columns
from jaccard_eval.report.numbers import UNDEFINED, threshold_text
from jaccard_eval.text import pluralise


def images_section(images: WorstImages, measure: str) -> Section:
    """Return the images with the highest cost."""
    # What an image is worth next to what it costs would be too wide; files for machines have it.
    rows: Rows = tuple(
        tuple(value for name, value in row.items() if name not in ("AP", "mean_IoU")) for row in images.rows(images.n)
    )
    heads = (
        Column("image", "path"),
        *columns("count", "gt", "TP", "FP", "FN"),
        *columns("metric", "precision", "recall", "F1"),
    )
    notes = [Note("cost: misses plus the scores of false positives")]
    notes += [Note(f"{UNDEFINED}: {TITLES.get(name, name)}: {reason}") for name, reason in images.undefined().items()]
    hidden = len(images.names) + images.unlisted - len(rows)
    notes += [Note(f"and {hidden:,} more; -o images.csv writes all")] if hidden > 0 else []
    at = f"score >= {threshold_text(images.score)}, {measure} >= {threshold_text(images.iou)}"
    return Section(f"Worst images ({at})", (Table((*heads, Column("cost", "ratio")), rows), *notes))


COST = "Ordered by cost: misses plus the scores of false positives"
ALL_BOXES = "Images of the classes that lose most, and the boxes of all images (--gallery N embeds more of them)"


def gallery_section(gallery: Gallery, about: str = COST, columns: Mapping[str, Any] | None = None) -> Section:
    """Return the section of a gallery: what it shows, the images, and what a script reads: classes, and all boxes."""
    at = f"score >= {threshold_text(gallery.score)} and {gallery.measure} >= {threshold_text(gallery.iou)}"
    notes = [Note(f"{ALL_BOXES if columns else about}, at {at}.")]
    notes += [Note(text) for text in gallery.notes]
    boxed = columns["shapes"].get("boxed", 0) if columns else 0
    if boxed:
        what = pluralise(boxed, "shape is drawn by its box", "shapes are drawn by their boxes")
        notes.append(Note(f"{what}, as a page has no room for more."))
    live = [Live("gallery", {"names": gallery.names, "score": gallery.score})]
    live += [Live("boxes", columns)] if columns else []
    made = [Note(f"Thumbnails by {gallery.made_with}.")] if any(image.thumbnail for image in gallery.images) else []
    return Section("Images", (*notes, gallery, *made, *live), key="images")
