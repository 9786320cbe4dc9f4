"""The images with the most costly errors, the surest false positives and the largest misses, with their boxes."""

from __future__ import annotations

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.images.gallery import DEFAULT_IMAGES, build_gallery
from jaccard_eval.features.images.report import gallery_section
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Section

PLACE = 100


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section; none where no images are asked for, or the result has no boxes."""
    gallery = build_gallery(result, DEFAULT_IMAGES if options.gallery is None else options.gallery)
    return [] if gallery is None or not gallery.images else [gallery_section(gallery)]
