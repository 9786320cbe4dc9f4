"""docs/formats.md is made of what the formats say of themselves.

Run as a script, this file writes the page anew.
"""

from pathlib import Path

from jaccard_eval.formats import Format, format_module, format_names, written_formats

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
HEAD = """# Formats

What can be read, and written with `jaccard-eval convert IN OUT [--to FORMAT]`. The format of an input is found by
looking; `--gt-format` and `--pred-format` settle what is ambiguous. `jaccard-eval formats` prints the same list, and
`python tests/test_formats_page.py` makes this page of it. Pickles are never loaded: export JSON, CSV or NumPy archives.

| format | what it is | written | carries | suffixes |
|---|---|---|---|---|
"""

WRITING = """
## Writing

`jaccard-eval convert IN OUT` writes every number with all its digits. What OUT cannot carry of the boxes ends the
run, unless `--lossy` is given. OUT is written whole or not at all, never onto an input, and onto something else
only with `--force`.

Predictions often lack what a format needs. `jaccard-eval convert PRED OUT --gt GT` takes it from their ground
truth: file names, image sizes, ids and the order of the classes. Predictions of classes that GT does not have need
`--class-map` or `--lossy`.

* **YOLO**: a folder with a text file per image, named by the image's path without suffix, and `data.yaml` with all
  classes. Lines are `class cx cy w h`, of predictions with the score at the end, as fractions of the image. Classes
  have the indices of YOLO ground truth, else they are numbered from 0 in their order. Ultralytics looks for a label
  beside its image, or in `labels` where the image is in `images`: name OUT `labels` and put `images` next to it, or
  put the images into OUT.
* **COCO JSON**: ids are integers. Those that the input has are kept; names are numbered from 1 in their order, with
  the name in `file_name`. Predictions with `--gt` are a results list with its ids: those it has, or those it gets
  when it is converted itself. Without `--gt`, predictions that name their images are an object that lists these.
* **Pascal VOC**: an XML file per image; predictions a text file per class.
* **CSV, Parquet, Arrow**: a row per box, and one per image without boxes. Parquet and Arrow come back as they were,
  ids included; CSV names images and classes.
* **Open Images**: fractions of the image, in one table.
"""


def page() -> str:
    """Return the page: a table of all formats, then the source and the example of each."""
    formats = [format_module(name).FORMAT for name in format_names()]
    return HEAD + "".join(map(_row, formats)) + WRITING + "".join(map(_section, formats))


def _row(one: Format) -> str:
    written = "yes" if one.name in written_formats() else ""
    suffixes = ", ".join(one.suffixes) or f"folders of {one.member}"
    summary = one.summary.replace("|", "\\|")
    return f"| [`{one.name}`](#{one.name}) | {summary} | {written} | {', '.join(one.carries)} | {suffixes} |\n"


def _section(one: Format) -> str:
    return f"\n## {one.name}\n\nSource: {one.source}\n\n```text\n{one.example.rstrip()}\n```\n"


def test_the_page_is_what_the_formats_say_of_themselves() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/test_formats_page.py"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
