"""CVAT for images and for video, XML 1.1: boxes of images, and tracks of boxes by frame."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.xmlroot import root_name

FORMAT = Format(
    name="cvat",
    summary="CVAT XML 1.1, of images or of tracks in a video; the file, or the folder that holds annotations.xml",
    source="https://docs.cvat.ai/docs/dataset_management/formats/format-cvat/",
    example="""<annotations>
  <version>1.1</version>
  <meta><task><labels><label><name>dog</name></label></labels></task></meta>
  <image id="0" name="street.jpg" width="640" height="480">
    <box label="dog" occluded="0" xtl="10.00" ytl="20.00" xbr="110.00" ybr="220.00" z_order="0"></box>
  </image>
</annotations>
""",
    carries=("images", "sizes", "names"),
    suffixes=(".xml",),
)

ROOT = "annotations"
_FILE = "annotations.xml"  # as CVAT calls it in its archives


def sniff(path: Path) -> bool:
    """Whether the file, or annotations.xml in the folder, has the outermost element of CVAT."""
    return root_name(_file_of(path)) == ROOT


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a CVAT file to the draft.

    Raises
    ------
    DataError
        When the file cannot be read; problems of its elements are among the draft's findings.
    """
    from jaccard_eval.formats._cvat.reader import read_tree  # not needed to look for a format
    from jaccard_eval.reading.xml import parse_xml

    file = _file_of(path)
    read_tree(file, parse_xml(file, ROOT), draft, options)


def _file_of(path: Path) -> Path:
    return path / _FILE if files.is_folder(path) else path
