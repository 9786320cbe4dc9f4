"""The images of a page: boxes as the evaluation counts them, inert names, files embedded, small enough."""

import base64
import io
import re
from html import unescape
from pathlib import Path

import pytest
from pictures import det, evaluate, gt
from PIL import Image

from jaccard_eval.cli import run
from jaccard_eval.features.images.gallery import gallery_section
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Gallery, GalleryBox, GalleryImage, Report
from jaccard_eval.report.outputs.html import render, render_report

html5lib = pytest.importorskip("html5lib")

SAMPLE = Path(__file__).parents[2] / "sample_data" / "yolo"
PADILLA = Path(__file__).parents[3] / "shared" / "data" / "padilla-review" / "data" / "database"
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "{{7*7}}",
    "\"' onload='alert(1)",
    "a\x00b\x1b[31m",
    "../../etc/passwd",
)


def elements(page: str, name: str) -> list:  # type: ignore[type-arg]
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    return [*tree.iter(name), *tree.iter(f"{{http://www.w3.org/2000/svg}}{name}")]


def captions_of(page: str) -> list:  # type: ignore[type-arg]
    return [caption for caption in elements(page, "figcaption") if caption.find("b") is not None]


def page_of(*args: str, tmp_path: Path) -> str:
    target = tmp_path / "report.html"
    assert run.run(["evaluate", *args, "-q", "-o", str(target)]) == 0
    return target.read_text(encoding="utf-8")


def boxes_of(page: str, *classes: str) -> list:  # type: ignore[type-arg]
    return [
        rect
        for rect in elements(page, "rect")
        if "data-c" in rect.attrib and {*classes} <= {*rect.get("class").split()}
    ]


def test_the_page_counts_and_draws_what_the_table_of_images_counts(tmp_path: Path) -> None:
    args = (str(SAMPLE / "data.yaml"), str(SAMPLE / "worse"), "--score", "0.5")
    page = page_of(*args, "-o", str(tmp_path / "images.csv"), tmp_path=tmp_path)
    lines = (tmp_path / "images.csv").read_text().splitlines()
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    captions = {"".join(item.find("b").itertext()): item.find("span").text for item in captions_of(page)}
    assert captions == {row["image"]: f"{row['fn']} missed, {row['fp']} false, {row['tp']} found" for row in rows}
    shown = [rect for rect in boxes_of(page) if "off" not in rect.get("class").split()]
    for state, column in (("missed", "fn"), ("false", "fp"), ("found", "tp")):
        assert sum(state in rect.get("class").split() for rect in shown) == sum(int(row[column]) for row in rows)


def test_boxes_have_their_place_score_and_words() -> None:
    truth = [gt("dog 10 20 30 40"), gt("cat 0 0 5 5.25")]
    page = render(evaluate(truth, [det("dog 10 20 30 40.5", 0.123456789)], score=0.1), ReportOptions())
    [found] = boxes_of(page, "found")
    assert (found.get("data-s"), found.get("height"), found.get("width")) == ("0.123456789", "40.5", "30")
    assert found.find("{http://www.w3.org/2000/svg}title").text == "dog 0.12, found, IoU 0.99"
    assert [rect.get("class") for rect in boxes_of(page, "object")] == ["missed object off", "missed object"]
    assert [rect.get("data-s") for rect in boxes_of(page, "object")] == ["0.123456789", None]


def test_thumbnails_are_embedded_and_nothing_else_is_loaded(tmp_path: Path) -> None:
    page = page_of(str(SAMPLE / "data.yaml"), str(SAMPLE / "worse"), tmp_path=tmp_path)
    links = [image.get("href") for image in elements(page, "image")]
    assert len(links) == len(captions_of(page)) > 3
    for link in links:
        assert link.startswith("data:image/jpeg;base64,")
        assert max(Image.open(io.BytesIO(base64.b64decode(link.partition(",")[2]))).size) <= 360
    assert not re.search(
        r"\sstyle=|\son\w+=", re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)
    )
    assert f"Thumbnails by Pillow {Image.__version__}" in page
    assert str(SAMPLE.parent) not in page[page.index('<section id="images"') : page.index('id="provenance"')]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_of_classes_and_images_are_text(name: str) -> None:
    page = render(evaluate([gt("x 0 0 9 9", name)], [det("x 0 0 9 9", 0.9, name)], score=0.5), ReportOptions())
    box = GalleryBox("found", name, (0, 0, 9, 9), 0.9)
    gallery = Gallery((GalleryImage(name, (9, 9), (box,)),), score=0.5, iou=0.5)
    page += render_report(Report("title", (gallery_section(gallery),)), ReportOptions())
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "49" not in {text.text for text in captions_of(page)}
    assert not [
        (element.tag, key)
        for element in html5lib.parse(page, namespaceHTMLElements=False).iter()
        if isinstance(element.tag, str)
        for key in element.attrib
        if key.startswith("on") or key == "style"
    ]
    assert "\x00" not in page
    assert "\x1b" not in page
    if name.isprintable():
        assert name in unescape(page)


def test_the_name_of_an_image_goes_on_in_the_next_line_behind_a_separator() -> None:
    gallery = Gallery((GalleryImage("val/COCO_val-1.jpg", (9, 9), ()),), score=0.5, iou=0.5)
    page = render_report(Report("title", (gallery_section(gallery),)), ReportOptions())
    assert "<figcaption><b>val/<wbr>COCO_<wbr>val-<wbr>1.jpg</b>" in page


def test_no_images_are_asked_for(tmp_path: Path) -> None:
    args = (str(SAMPLE / "data.yaml"), str(SAMPLE / "worse"))
    assert 'id="images"' not in page_of(*args, "--gallery", "0", tmp_path=tmp_path)
    two = page_of(*args, "--gallery", "2", tmp_path=tmp_path)
    assert len(captions_of(two)) == 2


def test_images_without_files_are_noted_and_drawn_on_a_canvas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "street_01.png").write_bytes(b"not an image")
    coco = SAMPLE.parent / "coco"
    target = tmp_path / "report.html"
    args = ["evaluate", str(coco / "gt.json"), str(coco / "worse.json"), "--images", str(tmp_path / "some")]
    assert run.run([*args, "-o", str(target)]) == 0
    messages = capsys.readouterr().err
    assert "note[image-file-missing]" in messages
    assert "note[image-unreadable]" in messages
    page = target.read_text()
    assert re.search(r"\d+ images have no file that can be shown", page)
    assert not elements(page, "image")
    assert str(tmp_path) not in page.replace(f"--images {tmp_path / 'some'}", "")


def test_the_same_bytes_twice_and_whatever_the_file_is_called(tmp_path: Path) -> None:
    args = (str(SAMPLE / "data.yaml"), str(SAMPLE / "better"))
    assert page_of(*args, tmp_path=tmp_path) == page_of(*args, tmp_path=tmp_path)


@pytest.mark.parametrize("asked", [[], ["--errors"]], ids=["plain", "errors"])
def test_a_result_document_is_the_same_with_a_page_and_without(asked: list[str], tmp_path: Path) -> None:
    args = (str(SAMPLE / "data.yaml"), str(SAMPLE / "worse"), *asked)
    page_of(*args, "-o", str(tmp_path / "with.json"), tmp_path=tmp_path)
    assert run.run(["evaluate", *args, "-q", "-o", str(tmp_path / "without.json")]) == 0
    assert (tmp_path / "with.json").read_bytes() == (tmp_path / "without.json").read_bytes()


@pytest.mark.skipif(not PADILLA.exists(), reason="no real data")
def test_a_page_of_real_photos_has_less_than_a_megabyte(tmp_path: Path) -> None:
    args = [str(PADILLA / "gts" / "pascalvoc_format"), str(PADILLA / "dets" / "abs_xywh")]
    args += ["--pred-names", str(PADILLA / "voc.names"), "--images", str(PADILLA / "images")]
    page = page_of(*args, tmp_path=tmp_path)
    # Two of each of twenty classes, of which some are the same, and those of the sentences.
    assert 24 <= len(elements(page, "image")) <= 46
    assert 300_000 < len(page.encode()) < 1_000_000


def test_a_saved_run_shows_its_images_and_a_document_has_none_to_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / name) for name in ("run.npz", "result.json", "direct.html")]
    args = [str(SAMPLE / "data.yaml"), str(SAMPLE / "worse"), "--score", "0.5"]
    assert run.run([*args, "-q", *(word for file in files for word in ("-o", file))]) == 0
    images = ["--images", str(SAMPLE / "images" / "val"), "-q"]
    assert run.run(["report", files[0], *images, "--gallery", "5", "-o", str(tmp_path / "saved.html")]) == 0
    saved = (tmp_path / "saved.html").read_text()
    direct = Path(files[2]).read_text()
    shown = {image.get("href") for image in elements(saved, "image")}
    assert len(elements(saved, "image")) == 5
    # Smaller thumbnails may be made of more images; here there are as many.
    assert shown <= {image.get("href") for image in elements(direct, "image")}
    assert run.run(["report", files[0], *images, "-o", f"{tmp_path}/worst.png/"]) == 0
    assert len(list((tmp_path / "worst.png").iterdir())) >= 10
    capsys.readouterr()
    assert run.run(["report", files[1], *images]) == 2
    assert "a saved run (.npz)" in capsys.readouterr().err
    assert run.run(["report", files[1], "-q", "-o", str(tmp_path / "plain.html")]) == 0
    assert not elements((tmp_path / "plain.html").read_text(), "image")


def test_the_page_of_explain_shows_the_images_of_its_boxes(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    args = ["explain", str(SAMPLE / "data.yaml"), str(SAMPLE / "worse"), "AP50", "--boxes", "2", "-q"]
    assert run.run([*args, "-o", str(target), "-o", str(tmp_path / "boxes.csv")]) == 0
    names = [line.split(",")[1] for line in (tmp_path / "boxes.csv").read_text().splitlines()[1:]]
    page = target.read_text()
    assert ["".join(caption.find("b").itertext()) for caption in captions_of(page)] == list(dict.fromkeys(names))
    assert len(elements(page, "image")) == len(captions_of(page))
    assert run.run([*args, "--gallery", "0", "-o", str(target)]) == 0
    assert not elements(target.read_text(), "image")


def test_the_first_line_names_model_and_data_or_is_the_title(tmp_path: Path) -> None:
    args = (str(SAMPLE.parent / "coco" / "gt.json"), str(SAMPLE.parent / "coco" / "worse.json"))
    assert '<p class="title">worse.json on gt.json</p>' in page_of(*args, tmp_path=tmp_path)
    page = page_of(*args, "--title", "<run> 12", tmp_path=tmp_path)
    assert '<p class="title">&lt;run&gt; 12</p>' in page
    assert "<title>&lt;run&gt; 12 · AP 0.3463" in page


def test_a_page_without_image_files_says_how_to_show_them() -> None:
    page = render(evaluate([gt("x 0 0 9 9")], [det("x 0 0 9 9", 0.9)], errors=True), ReportOptions())
    assert "Boxes are drawn on a plain canvas: name the folder of the images to see them." in page


def test_the_page_of_explain_has_the_curve_of_its_metric(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    args = ["explain", str(SAMPLE / "data.yaml"), str(SAMPLE / "worse"), "AP50[class=dog]", "-q", "-o", str(target)]
    assert run.run(args) == 0
    page = target.read_text()
    section = page[page.index('<section id="curves"') :].partition("</section>")[0]
    assert '<path class="line' in section
    assert "precision-recall</figcaption>" in section
