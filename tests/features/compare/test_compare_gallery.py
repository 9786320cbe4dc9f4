"""Images of a comparison: what is lost and found, boxes of both sides, and how they are counted."""

import re
from pathlib import Path

from jaccard_eval import BoxTable, compare
from jaccard_eval.cli import run
from jaccard_eval.features.compare import ChangeKind
from jaccard_eval.features.compare.page import build_gallery, gallery_sections
from jaccard_eval.report import ReportOptions

SAMPLE = Path(__file__).parents[3] / "sample_data"
# Image 0: A finds both, B the first. 1: B finds what A misses. 2: nobody finds it. 3: both find it, at one place.
BOXES = [[0, 0, 10, 10], [20, 0, 30, 10]]
GT = BoxTable.from_arrays([0, 0, 1, 2, 3], [0] * 5, [*BOXES, BOXES[0], BOXES[0], BOXES[0]])
A = BoxTable.from_arrays([0, 0, 3, 3], [0] * 4, [*BOXES, BOXES[0], [70, 70, 80, 80]], score=[0.9, 0.8, 0.9, 0.7])
B = BoxTable.from_arrays([0, 1, 3], [0] * 3, [BOXES[0], BOXES[0], BOXES[0]], score=[0.9, 0.9, 0.9])


def test_images_with_changes_show_both_sides_and_what_is_lost_and_found() -> None:
    result = compare(GT, A, B, names={"A": "old", "B": "new"})
    gallery = build_gallery(result, result.others[0], 24)
    tabs = {tab.title: [gallery.images[row].name for row in tab.rows] for tab in gallery.tabs}
    assert tabs == {"Changed": ["0", "1"], "Lost": ["0"], "Found": ["1"]}
    lost, found = gallery.images
    assert [(box.state, box.side, box.change) for box in lost.boxes] == [
        ("missed", "", "lost"),
        ("found", "old", ""),
        ("found", "old", ""),
        ("found", "new", ""),
    ]
    assert [(box.state, box.side, box.change, box.second) for box in found.boxes] == [
        ("missed", "", "found", False),
        ("found", "new", "", True),
    ]
    assert lost.caption == "1 lost, 0 found; old: 2 right, 0 false; new: 1 right, 0 false"
    assert gallery.toggles[-2:] == (("first", "old"), ("second", "new"))


def test_the_captions_count_what_the_comparison_counts() -> None:
    coco = SAMPLE / "coco"
    result = compare(coco / "gt.json", coco / "better.json", coco / "worse.json")
    gallery = build_gallery(result, result.others[0], 200)
    counts = result.others[0].counts()
    for kind, place in ((ChangeKind.LOST, 0), (ChangeKind.FOUND, 1)):
        told = [int(re.findall(r"(\d+) (?:lost|found)", image.caption)[place]) for image in gallery.images]
        assert sum(told) == counts[kind]
    assert counts[ChangeKind.LOST] > 0


def test_nothing_is_shown_where_nothing_changed_or_no_image_is_asked_for() -> None:
    assert gallery_sections(compare(GT, A, A), ReportOptions()) == []
    assert gallery_sections(compare(GT, A, B), ReportOptions(gallery=0)) == []
    assert len(gallery_sections(compare(GT, A, B), ReportOptions())) == 1


def test_the_page_has_them_with_the_files_of_the_images(tmp_path: Path) -> None:
    yolo = SAMPLE / "yolo"
    sides = [str(yolo / name) for name in ("data.yaml", "better", "worse")]
    page = tmp_path / "report.html"
    assert run.run(["compare", *sides, "--gallery", "3", "-q", "-o", str(page)]) == 0
    text = page.read_text()
    assert text.count("data:image/jpeg;base64,") == text.count("<figcaption><b>") >= 3
    assert 'class="missed was-lost object"' in text
    assert run.run(["compare", *sides, "--gallery", "0", "-q", "-o", str(page)]) == 0
    assert "data:image/jpeg" not in page.read_text()


def test_saved_runs_show_their_images_from_a_folder(tmp_path: Path) -> None:
    yolo = SAMPLE / "yolo"
    runs = []
    for name in ("better", "worse"):
        runs.append(str(tmp_path / f"{name}.npz"))
        assert run.run(["evaluate", str(yolo / "data.yaml"), str(yolo / name), "-q", "-o", runs[-1]]) == 0
    page = tmp_path / "report.html"
    assert run.run(["compare", *runs, "-q", "-o", str(page)]) == 0
    assert "data:image/jpeg" not in page.read_text()
    assert run.run(["compare", *runs, "-q", "--images", str(yolo / "images" / "val"), "-o", str(page)]) == 0
    text = page.read_text()
    assert text.count("data:image/jpeg;base64,") == text.count("<figcaption><b>") > 3
