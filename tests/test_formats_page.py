"""docs/formats.md is generated from the descriptions of the formats; the site has a page for each with its example.

Run as a script, this file rewrites the page.
"""

from pathlib import Path

from jaccard_eval.formats import Format, format_module, format_names, written_formats

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
HEAD = """# Formats

For those who look for their format, or convert one.

`jaccard-eval convert IN OUT [--to FORMAT]` writes those marked "written". The format
of an input is detected; if it is ambiguous, name it with `--gt-format` or `--pred-format`. `jaccard-eval formats`
prints the same list by kind of shape, `jaccard-eval formats NAME` one format: what it carries, where shapes stand in
it, its source and an example, as a name of the table links to. [Shapes](shapes.md) has what of them is compared.
`python tests/test_formats_page.py` generates this page. Pickles are never loaded: export JSON, CSV or NumPy archives
instead.

Data sets are found in their folders as published: of a root with a file or folder for each split (`train`, `val`,
`test`), `val` is read, and a note names it; `--split` chooses another.

| format | what it is | besides boxes | written | suffixes |
|---|---|---|---|---|
"""

WRITING = """
## Writing

`jaccard-eval convert IN OUT` writes every number with all its digits. If OUT cannot store something that the boxes
have, the run stops; `--lossy` writes the rest. OUT is written completely or not at all. It never replaces an input, and
replaces other files only with `--force`.

Predictions often lack what a format needs. `jaccard-eval convert PRED OUT --gt GT` takes it from the ground truth:
file names, image sizes, ids and class order. If predictions have classes that GT lacks, add `--class-map` or `--lossy`.

* **YOLO**: a folder with one text file per image, named after the image path without suffix, and `data.yaml` with all
  classes. Lines are `class cx cy w h` in fractions of the image; predictions end with the score. Classes keep the
  indices of YOLO ground truth; otherwise they are numbered from 0 in order. Ultralytics looks for labels next to the
  image, or in `labels` if the image is in `images`. So name OUT `labels` and put `images` next to it, or put the
  images into OUT.
* **COCO JSON**: ids are integers. Existing integer ids are kept. Names are numbered from 1 in order, with the name in
  `file_name`. With `--gt`, predictions become a results list with the ids of GT: those in its file, or those that it
  gets when it is converted. Without `--gt`, predictions that name their images become an object that lists the images.
* **Pascal VOC**: one XML file per image; for predictions one text file per class.
* **CSV, Parquet, Arrow**: one row per box, and one per image without boxes. Parquet and Arrow keep everything when
  read back, ids included. CSV has the names of images and classes.
* **Masks as images** (`--to instances`): a PNG per image whose values are its objects, and `instances.csv` with their
  classes and scores. Where masks share pixels, the smaller one keeps them. `npz` holds masks that overlap.
* **CVAT, Label Studio** (`--to labelstudio`): boxes, polygons and masks, to be corrected in these tools. Masks that are
  not one polygon are runs in CVAT and brushed in Label Studio; oriented boxes are polygons of four corners.
* **Open Images**: fractions of the image, in one table.
"""


def page() -> str:
    """Return the page: a a table of all formats, and how they are written."""
    formats = [format_module(name).FORMAT for name in format_names()]
    return HEAD + "".join(map(_row, formats)) + WRITING


def _row(one: Format) -> str:
    written = "yes" if one.name in written_formats() else ""
    suffixes = ", ".join(one.suffixes) or f"folders of {one.member}"
    summary = one.summary.replace("|", "\\|")
    shapes = ", ".join(kind for kind in one.reads if kind != "bbox")
    source = Path(format_module(one.name).__file__ or "").name
    return f"| [`{one.name}`](../jaccard_eval/formats/{source}) | {summary} | {shapes} | {written} | {suffixes} |\n"


def test_the_page_equals_what_it_is_generated_from() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/test_formats_page.py"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
