"""Scale and overlap of what two inputs hold: from both sides, brought together, to their results."""

from __future__ import annotations

from jaccard_eval.data.protocol import Protocol
from jaccard_eval.evaluation import Sides
from jaccard_eval.features.scale.compute import FOUND_IOU, analyse_scale
from jaccard_eval.features.scale.overlap import choose_pair, measure_overlap
from jaccard_eval.features.scale.result import OverlapResult, ScaleOptions, SensitivityResult
from jaccard_eval.features.scale.sized_sides import make_scene
from jaccard_eval.findings import DataError, Where


def analyse_sides(sides: Sides, protocol: Protocol, options: ScaleOptions, *, version: str) -> SensitivityResult:
    """Analyse what the size of objects does to the score; `version` is that of the tool.

    Raises
    ------
    DataError
        When sizes in pixels are unknown.
    """
    require_pixels(sides)
    aligned = sides.aligned
    scene = make_scene(
        aligned.gt,
        aligned.pred,
        protocol,
        n_images=len(aligned.image_names),
        class_names=aligned.class_names,
        n_bins=options.bins,
        edges=options.edges,
    )
    found = analyse_scale(scene, options)
    choices = ("kind=sensitivity", f"found={FOUND_IOU:g}", *options.chosen())
    gt, pred = sides.summaries()
    return SensitivityResult(
        protocol=scene.protocol,
        options=options,
        signature=sides.sign(scene.protocol, *choices, version=version),
        version=version,
        gt=gt,
        pred=pred,
        correspondence=aligned.correspondence,
        losses=found.losses,
        placement=found.placement,
        tolerance=found.tolerance,
        survivors=found.survivors,
        findings=sides.findings,
    )


def require_pixels(sides: Sides) -> None:
    """Raise a DataError when boxes are fractions of images whose size is unknown."""
    if sides.aligned.units == "norm":
        raise DataError.single(
            "size-unknown",
            Where(sides.gt.path),
            "errors are measured in pixels, but boxes are normalised and image sizes unknown",
            fix="Give the pictures with --images DIR.",
        )


def overlap_in_image(
    sides: Sides, image: str, *, pred_index: int | None = None, gt_index: int | None = None, version: str
) -> OverlapResult:
    """Measure two boxes of an image; see `analysis.overlap.choose_pair` for which, and for the errors."""
    require_pixels(sides)
    aligned = sides.aligned
    pair = choose_pair(aligned, image, pred_index=pred_index, gt_index=gt_index)
    pred, gt = aligned.pred, aligned.gt
    measured = measure_overlap(pred.xywh[pair.pred].tolist(), gt.xywh[pair.gt].tolist(), "xywh")
    score = "" if pred.score is None else f", score {pred.score[pair.pred]:.4g}"
    return OverlapResult(
        version=version,
        image=pair.image,
        pred_name=f"{aligned.class_names[pred.label[pair.pred]]}{score}",
        gt_name=aligned.class_names[gt.label[pair.gt]],
        findings=sides.findings,
        **measured,
    )
