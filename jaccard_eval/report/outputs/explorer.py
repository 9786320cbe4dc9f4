"""The folder: all images and boxes of a result, opened from the disk by a browser; no server, nothing fetched.

Data are scripts next to the page, which is the one thing that a page on a disk may load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaccard_eval.progress import tracked
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import Block, Explorer, Gallery, GalleryImage, build_explorer, has_folder
from jaccard_eval.report.numbers import threshold_text
from jaccard_eval.report.outputs import annotated, html
from jaccard_eval.report.sections import build_page

PAGE, NUMBERS = "index.html", "numbers.html"
SHARED = ("page.js", "boxes.js", "choice.js", "shapes.js", "review.js")  # with the page in one file
VIEWS = ("core.js", "panel.js", "grid.js", "view.js", "main.js")
SIDE, QUALITY = 256, 60  # of thumbnails: 7 kB each
MOST_PICTURES = 200  # that a page of drawings has
KEYS = (
    ("j k", "next, previous"),
    ("arrows", "between tiles"),
    ("Enter", "open the image"),
    ("f", "next failure, zoomed; then the next image"),
    ("Escape", "back, then clear the filters"),
    ("g p t", "objects, false, found boxes on and off"),
    ("+ - 0", "zoom; also wheel, drag and two fingers"),
    ("b", "images or boxes"),
    ("m", "other model"),
    ("a x", "accept, reject a suspected label"),
    ("w", "hide the left side"),
    ("/", "filter classes"),
)


def render(result: Reportable, options: ReportOptions) -> Mapping[str, bytes]:
    """Return the files of the folder by their names; of results that have none of it, the images with their boxes."""
    explorer = build_explorer(result, replace(options, gallery=0, per_class=True))
    if explorer is None:
        return annotated.render(result, options) if has_folder(result) else _pictured(result, options)
    files: dict[str, bytes] = {PAGE: _encoded(_page(explorer)), NUMBERS: _numbers(explorer, options)}
    thumbnails = _thumbnails(explorer) if options.thumbnails else {}
    head = {
        "models": list(explorer.models),
        "pictures": _pictures(explorer, options.folder) if explorer.pictures is None else list(explorer.pictures),
        "thumbs": bool(thumbnails),
    }
    for name, content in {"head": head, **explorer.models}.items():
        files[f"data/{name}.js"] = _encoded(f'loaded("{name}",{html.json_text(content)})\n')
    return {**files, **thumbnails, **explorer.files}


def _pictured(result: Reportable, options: ReportOptions) -> dict[str, bytes]:
    """Return a page next to the files of its images: what is shown by drawings, such as label maps, or by few boxes."""
    options = replace(options, per_class=True, gallery=MOST_PICTURES, large=True)
    report, files = build_page(result, options), dict[str, bytes]()

    def beside(image: GalleryImage) -> GalleryImage:
        if not image.thumbnail:
            return image
        suffix = "png" if image.thumbnail.startswith(b"\x89PNG") else "jpg"
        name = f"images/{len(files):04}.{suffix}"
        files[name] = image.thumbnail
        return replace(image, thumbnail=b"", file=name)

    def without_pictures(block: Block) -> Block:
        return replace(block, images=tuple(map(beside, block.images))) if isinstance(block, Gallery) else block

    sections = (replace(section, blocks=tuple(map(without_pictures, section.blocks))) for section in report.sections)
    page = html.render_report(replace(report, sections=tuple(sections)), options)
    html.require_size(page)
    return {PAGE: _encoded(page), **files}


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _numbers(explorer: Explorer, options: ReportOptions) -> bytes:
    page = html.render_report(explorer.numbers, replace(options, gallery=0, title=explorer.title))
    html.require_size(page)
    return _encoded(page)


def _page(explorer: Explorer) -> str:
    first: Mapping[str, Any] = next(iter(explorer.models.values()))
    folder = html.ASSETS / "explorer"
    paths = [*(html.ASSETS / name for name in SHARED), *(folder / name for name in VIEWS)]
    return html.render_template(
        "explorer.html.j2",
        style=(folder / "explorer.css").read_text(encoding="utf-8"),
        script=html.squeeze("".join(path.read_text(encoding="utf-8") for path in paths)),
        # Scripts that the page's own one makes may run, others not.
        more_scripts=" 'strict-dynamic'",
        image_sources="'self' file: data:",
        title=explorer.title,
        headline=explorer.numbers.headline.text if explorer.numbers.headline else explorer.numbers.title,
        judged=f"{first['measure']} {threshold_text(first['iou'])}",
        one=explorer.pictures is not None,  # score for all
        note=explorer.note,
        keys=KEYS,
    )


def _pictures(explorer: Explorer, folder: Path | None) -> list[str]:
    """Return the address of each image from the folder, "" where none is known."""
    known = explorer.images is not None and folder is not None
    return list(explorer.images.addresses(folder)) if known else []


def _thumbnails(explorer: Explorer) -> dict[str, bytes]:
    """Return small copies of all images that can be shown, by number, as names may collide; over the processors."""
    from jaccard_eval.engine.threads import map_in_order
    from jaccard_eval.reading.images import silent_pillow

    images = explorer.images
    rows = range(len(images.sizes)) if images is not None and images.given else range(0)
    made = {}
    # Pillow decodes and encodes without holding the interpreter. What silences it is a global: of all threads at once.
    with silent_pillow():
        found = map_in_order(lambda row: images.thumbnail(row, side=SIDE, quality=QUALITY), rows)
        for row, thumbnail in zip(rows, tracked(found, "thumbnails", len(rows)), strict=True):
            if thumbnail is not None:
                made[f"thumbs/{row:06}.jpg"] = thumbnail.data
    return made


REPORTERS = (
    Reporter(
        names=("folder/",),
        about="images for a browser, or PNG (explain), or linked pages (suite, report of several)",
        render=render,
        errors=True,
    ),
)
