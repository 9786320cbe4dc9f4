"""Options that evaluations and their relatives share, as frozen values. Nothing is read, and nothing is computed."""

from __future__ import annotations

import os
from dataclasses import dataclass

from jaccard_eval.errors import UsageError

BY_FOLDER = "folder"  # what images may be grouped by, beside a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """How images are resampled.

    Parameters
    ----------
    n_resamples : int
        How many resamples are drawn.
    confidence_level : float
        Of the intervals, between 0 and 1.
    rng : int
        Seed; each resample is drawn from the seed and its own number, whoever computes it.
    group_by : str, optional
        "folder", or the path of a CSV file with the rows ``image,group``: groups of images are drawn as a whole, as the
        frames of a video have to be.
    """

    n_resamples: int = 1000
    confidence_level: float = 0.95
    rng: int = 0
    group_by: str | None = None

    def __post_init__(self) -> None:
        _require(_is_whole(self.n_resamples, 2), "n_resamples", "a whole number from 2 on", self.n_resamples)
        _require(0 < self.confidence_level < 1, "confidence_level", "between 0 and 1", self.confidence_level)
        _require(_is_whole(self.rng, 0), "rng", "a whole number from 0 on", self.rng)
        if self.group_by is not None:
            object.__setattr__(self, "group_by", os.fspath(self.group_by))  # documents keep it


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _require(holds: bool, name: str, expected: str, value: object) -> None:
    if not holds:
        raise UsageError(f"{name} must be {expected}, got {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Some of the images.

    Parameters
    ----------
    name : str
    patterns : tuple of str
        Names of images, or globs of names, in which ``*`` also stands for slashes.
    exact : bool
        Whether the patterns are names and nothing else, as those of a file are.
    """

    name: str
    patterns: tuple[str, ...]
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read one side; None means: find out by looking.

    Parameters
    ----------
    role : {"gt", "pred"}
    box : {"xywh", "xyxy", "cxcywh", "xxyy", "yxyx"}, optional
        What the four numbers of a box are.
    units : {"px", "norm"}, optional
    names : tuple of str, optional
        Class names by index.
    images : path, optional
        The folder of pictures, for their list and sizes; one that is listed already will do as well.
    columns : str, optional
        Column layout of text files.
    split : str
        Which split is read of a data set that has splits: by its description, or by the names of its folders or files.
    assume_score : float, optional
        Score of predictions that carry none.
    origin : {0, 1}
        What the file calls the first pixel: 0, or 1 as in PASCAL VOC and MATLAB. It is subtracted from x and y of boxes
        in pixels.
    """

    role: str = "gt"
    box: str | None = None
    units: str | None = None
    names: tuple[str, ...] | None = None
    images: str | os.PathLike[str] | None = None
    columns: str | None = None
    split: str = "val"
    assume_score: float | None = None
    origin: int = 0
