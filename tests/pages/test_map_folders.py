"""Folders of label maps and segments: the two columns, each count a selection, each number the library's."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_pages import EVERY_BUTTON, HOSTILE, until
from command_line import run_here, write_json
from PIL import Image

import jaccard_eval
from jaccard_eval.report.panels import LARGE

Opened = Callable[..., Any]
CLASSES = ("road", "car", "sky", "a>b", "c=d&e#f")
N, SIDE, VOID = 6, 48, 255


def write_maps(folder: Path) -> list[str]:
    """Maps of five classes and pixels to ignore; predictions are moved, taken for others, or of no class."""
    random = np.random.default_rng(5)
    for row in range(N):
        truth = np.repeat(np.repeat(random.integers(0, len(CLASSES), (6, 6)), 8, 0), 8, 1).astype(np.uint8)
        found = np.roll(truth, row % 3, axis=1)
        found[:8, :16], found[40:, 40:], truth[20:22] = (truth[:8, :16] + 1) % len(CLASSES), VOID, VOID
        for side, pixels in (("gt", truth), ("pred", found)):
            (folder / side).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(folder / side / f"{row} #?.png")
    (folder / "classes.txt").write_text("\n".join(CLASSES))
    return [str(folder / "gt"), str(folder / "pred")]


def write_segments(folder: Path, names: tuple[str, ...] = CLASSES) -> list[str]:
    """Six images of 16 segments: each third is dropped, each fourth moved, each fifth of another class."""
    random, sides = np.random.default_rng(7), {"gt": [], "pred": []}
    for row in range(N):
        ids = np.repeat(np.repeat(np.arange(1, 17).reshape(4, 4), 12, 0), 12, 1)
        labels = random.integers(1, len(names) + 1, 17)
        found, other = ids.copy(), labels.copy()
        for one in range(1, 17):
            at = ids == one
            if (one + row) % 5 == 0:
                other[one] = labels[one] % len(names) + 1
            if (one + row) % 4 == 0:
                # 4 of 12 columns are left: IoU 1 / 3. A whole row of pixels takes nobody else's place.
                found[at & (np.arange(SIDE)[None, :] % 12 >= 4)] = 0
            if (one + row) % 3 == 0:
                found[at] = 0
        for side, pixels, classes in (("gt", ids, labels), ("pred", found, other)):
            (folder / side).mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.stack([pixels, 0 * pixels, 0 * pixels], axis=-1).astype(np.uint8)).save(
                folder / side / f"{row}.png"
            )
            there = [int(one) for one in np.unique(pixels) if one]
            listed = [
                {"id": one, "category_id": int(classes[one]), "iscrowd": int(side == "gt" and one == 16 and row == 0)}
                for one in there
            ]
            sides[side].append({"image_id": row, "file_name": f"{row}.png", "segments_info": listed})
    images = [{"id": row, "file_name": f"{row}.png", "width": SIDE, "height": SIDE} for row in range(N)]
    categories = [{"id": i, "name": name, "isthing": i % 2} for i, name in enumerate(names, start=1)]
    gt = {"images": images, "annotations": sides["gt"], "categories": categories}
    return [
        str(write_json(folder / "gt.json", gt)),
        str(write_json(folder / "pred.json", {"annotations": sides["pred"]})),
    ]


def folder_of(words: list[Any], folder: Path) -> Path:
    done = run_here(*words, "-q", "-o", f"{folder}/out/")
    assert done.returncode == 0, done.stderr
    return folder / "out"


def words_of(command: str, folder: Path) -> list[Any]:
    options = ("--slice", "first=[012]*", "--slice", "rest=[345]*")
    if command == "pixels":
        return [command, *write_maps(folder), "--classes", folder / "classes.txt", "--ignore", VOID, *options]
    return [command, *write_segments(folder), *options]


@pytest.fixture(scope="module", params=["pixels", "panoptic"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, folder, folder_of(words_of(request.param, folder), folder)


@pytest.fixture(scope="module")
def opened(browser: Any) -> Opened:
    """Open a folder; nothing but its own files may be asked for, and nothing said."""

    @contextmanager
    def opening(folder: Path, state: str = "", width: int = 1280, **settings: Any) -> Iterator[Any]:
        context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        page, noise = context.new_page(), []
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("requestfailed", lambda asked: noise.append(asked.url))
        page.on("request", lambda asked: asked.url.startswith("file:") or noise.append(asked.url))
        page.goto(f"{(folder / 'index.html').as_uri()}#{state}")
        page.wait_for_selector("[data-boxes=there]")
        yield page
        context.close()
        assert noise == []

    return opening


def result_of(command: str, folder: Path) -> Any:
    if command == "pixels":
        return jaccard_eval.pixels(folder / "gt", folder / "pred", classes=CLASSES, ignore=[VOID])
    return jaccard_eval.panoptic(folder / "gt.json", folder / "pred.json")


STATES: tuple[dict[str, str], ...] = (
    {},
    {"class": "car"},
    {"error": "missed", "slice": "first"},
    {"error": "taken", "class": "a>b"},
    {"object": "road", "pred": "car"},
    {"object": "sky", "pred": ""},
    {"class": "c=d&e#f", "slice": "rest"},
)


def test_every_count_is_what_it_selects(scene: tuple[str, Path, Path], opened: Opened) -> None:
    with opened(scene[2]) as page:
        for state in STATES:
            n, wrong = page.evaluate(EVERY_BUTTON, state)
            assert wrong == []
            assert n > 20


def test_every_number_is_the_librarys(scene: tuple[str, Path, Path], opened: Opened) -> None:
    command, folder, out = scene
    result = result_of(command, folder)
    counts = "(({ found, false: wrong, missed }) => [found, wrong, missed])(countsNow())"
    with opened(out) as page:
        values = [row.values["IoU" if command == "pixels" else "PQ"].value for row in result.per_class]
        assert page.evaluate("about.values") == [pytest.approx(value) for value in values]
        by_class = page.evaluate("about.classes.map((_, i) => [tally.missed[i], tally.false[i]])")
        cells = np.array(page.evaluate("[...tally.cells]")).reshape(len(CLASSES) + 1, -1)
        if command == "panoptic":
            assert page.evaluate(counts) == [
                sum(getattr(row, name) for row in result.per_class) for name in ("tp", "fp", "fn")
            ]
            assert by_class == [[row.fn, row.fp] for row in result.per_class]
            assert np.diag(cells)[:-1].tolist() == [row.tp for row in result.per_class]
            # Each object that counts is in one cell of its row.
            assert cells[:-1].sum(axis=1).tolist() == [row.gt for row in result.per_class]
            return
        expected = np.zeros_like(cells)
        for gt, pred, n in result.confusion:
            expected[CLASSES.index(gt), len(CLASSES) if pred is None else CLASSES.index(pred)] = n
        assert cells.tolist() == expected.tolist()
        hits, rows, columns = np.diag(expected)[:-1], expected.sum(axis=1)[:-1], expected.sum(axis=0)[:-1]
        assert by_class == np.stack([rows - hits, columns - hits], axis=1).tolist()
        assert page.evaluate(counts) == [hits.sum(), (columns - hits).sum(), (rows - hits).sum()]
        # Pixels that are wrong, each once: missed by one class or false of another.
        assert page.evaluate("sizeOf(selection)") == expected[:-1].sum() - hits.sum()


def test_why_segments_are_wrong_is_what_their_maps_say(opened: Opened, tmp_path: Path) -> None:
    """Of each segment the largest IoU with any of the other side, from the pixels of both maps."""
    out = folder_of(words_of("panoptic", tmp_path), tmp_path)
    sides = [json.loads((tmp_path / f"{side}.json").read_text())["annotations"] for side in ("gt", "pred")]
    expected = dict.fromkeys(("nothing", "off", "taken", "background", "box", "class", "both"), 0)
    for gt, pred in zip(*sides, strict=True):
        maps = [np.asarray(Image.open(tmp_path / side / gt["file_name"]))[..., 0] for side in ("gt", "pred")]
        crowds = {one["id"] for one in gt["segments_info"] if one["iscrowd"]}
        label = [{one["id"]: one["category_id"] for one in side["segments_info"]} for side in (gt, pred)]
        # Each prediction lies within the segment of its id, so that their union is the segment.
        share = {one: np.mean(maps[1][maps[0] == one] == one) for one in label[0]}
        for one, name in label[0].items():
            same = label[1].get(one) == name
            if one in crowds or (share[one] > 0.5 and same):
                continue
            expected["taken" if share[one] > 0.5 else "off" if same else "nothing"] += 1
            if one in label[1]:
                expected["class" if share[one] > 0.5 else "box" if same else "both"] += 1
    assert min(expected[kind] for kind in ("nothing", "off", "taken", "box", "class")) > 0
    with opened(out) as page:
        found = page.evaluate("Object.fromEntries(KINDS.map((kind, code) => [kind, tally.kinds[code]]))")
        assert {kind: found[kind] for kind in expected} == expected


def test_an_image_has_its_three_maps_and_numbers(scene: tuple[str, Path, Path], opened: Opened) -> None:
    command, _, out = scene
    with opened(out) as page:
        assert page.locator("#score").is_hidden() and page.locator(".cards li").count() == 3
        until(page, "all('.tile image').length === 6")
        page.locator(".tile").first.click()
        until(page, "all('#stage image').length === 3")
        titles = page.locator("#stage figcaption").all_inner_texts()
        assert titles == ["ground truth", "prediction", "difference"]
        files = page.evaluate("all('#stage image').map(one => one.getAttribute('href'))")
        start = files[0].removesuffix("0.png")
        assert files == [f"{start}{layer}.png" for layer in range(3)]
        words = "pixels differ" if command == "pixels" else "found,"
        assert words in page.locator("#reasons p").first.inner_text()
        # What is pointed at has an outline in each map, and one zoom.
        page.keyboard.press("f")
        until(page, "all('#stage .b.hot:not(.halo)').length === 3")
        assert page.evaluate("new Set(stages.map(({ picture }) => picture.getAttribute('viewBox'))).size") == 1
        page.keyboard.press("Escape")
        page.wait_for_selector("#view", state="hidden")
        page.keyboard.press("b")
        until(page, "items.length > 6")


def test_a_cell_is_outlined_where_its_pixels_are(opened: Opened, tmp_path: Path) -> None:
    """Road at columns 30 to 39 of 64 is predicted as car: the box of that cell is 10 of 64 columns."""
    for side, value in (("gt", 0), ("pred", 1)):
        pixels = np.zeros((32, 64), dtype=np.uint8)
        pixels[8:16, 30:40] = value
        (tmp_path / side).mkdir()
        Image.fromarray(pixels).save(tmp_path / side / "a.png")
    out = folder_of(["pixels", tmp_path / "gt", tmp_path / "pred", "--classes", "road,car"], tmp_path)
    with opened(out, "object=road&pred=car") as page:
        assert page.evaluate("selection.marks.indexOf(1)") > 0
        x, y, w, h = page.evaluate("sideOf(selection.marks.indexOf(1))")
        assert (x, y, w, h) == pytest.approx((30, 8, 10, 8), abs=0.01)
        assert page.locator("#what").inner_text() == "80 pixels in 1 image"
        assert page.locator(".cards b").first.inner_text() == "road is predicted as car on 80 pixels"
        with page.expect_download() as download:
            page.locator("#csv").click()
        assert Path(download.value.path()).read_text().splitlines() == [
            "image,class,what,pixels,x,y,width,height,why",
            '"a.png",car,false,80,30,8,10,8,wrong class: is road'.replace('"', ""),
        ]


def test_fixing_a_pair_gives_the_gain_that_a_card_says(tmp_path: Path) -> None:
    """Evaluated again with these pixels put right."""
    sides = write_maps(tmp_path)
    out = folder_of(words_of("pixels", tmp_path), tmp_path)
    model = json.loads((out / "data" / "a.js").read_text().removeprefix('loaded("a",').removesuffix(")\n"))
    before = result_of("pixels", tmp_path)["mIoU"]
    gains = [float(gain.split()[0]) for *_, gain in model["next"]]
    assert gains == sorted(gains, reverse=True)
    _, _, pick, gain = model["next"][0]
    of, to = CLASSES.index(pick["object"]), CLASSES.index(pick["pred"]) if pick["pred"] else VOID
    for path in Path(sides[1]).iterdir():
        truth, found = (np.array(Image.open(Path(side) / path.name)) for side in sides)
        found[(truth == of) & (found == to)] = of
        Image.fromarray(found).save(path)
    assert float(gain.split()[0]) == pytest.approx(result_of("pixels", tmp_path)["mIoU"] - before, abs=6e-5)


def test_maps_that_are_not_drawn_are_counted_and_said(opened: Opened, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("jaccard_eval.features.pixels.counting.MOST_SHOWN", 2)
    monkeypatch.setattr("jaccard_eval.features.panoptic.page.MOST_SHOWN", 2)
    for command in ("pixels", "panoptic"):
        folder = tmp_path / command
        out = folder_of(words_of(command, folder), folder)
        assert len(list((out / "maps").iterdir())) == 6
        with opened(out) as page:
            assert page.locator(".note").inner_text().startswith("Of 6 ")
            assert page.evaluate("items.length") == 6
            page.evaluate("openImage(items.at(-1)); render()")
            assert page.evaluate(EVERY_BUTTON, {})[1] == []


def test_axe_finds_nothing_and_nothing_runs_over_390_px(scene: tuple[str, Path, Path], opened: Opened) -> None:
    import axe_playwright_python

    axe = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    with opened(scene[2], "class=car") as page:
        page.evaluate(axe)
        for act in ("chosen = { class: 'car', show: 'boxes' }; render()", "openImage(0); render()"):
            page.evaluate(act)
            for scheme, rules in (("light", "{}"), ("dark", "{runOnly: ['color-contrast']}")):
                page.emulate_media(color_scheme=scheme)
                found = page.evaluate(f"axe.run(document, {rules})")
                assert [(one["id"], one["nodes"][0]["html"][:150]) for one in found["violations"]] == []
            for width in (390, 800):
                page.set_viewport_size({"width": width, "height": 844})
                assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_names_are_text_and_select(opened: Opened, tmp_path: Path) -> None:
    write_segments(tmp_path, HOSTILE)
    words = ["panoptic", tmp_path / "gt.json", tmp_path / "pred.json", "--title", HOSTILE[0]]
    with opened(folder_of(words, tmp_path)) as page:
        assert page.evaluate(EVERY_BUTTON, {})[1] == []
        page.evaluate("openImage(0); render()")
        for name in page.evaluate("about.classes"):
            page.evaluate("name => { chosen = { class: name }; remember(); render(); }", name)
            assert page.evaluate("readAddress().class") == name
        assert page.evaluate("window.pwned === undefined")


def test_written_again_it_is_the_same_and_foreign_folders_are_refused(scene: tuple[str, Path, Path]) -> None:
    command, folder, out = scene
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert len(before) == 5 + 3 * N  # index, numbers, head, a, and the list of them
    assert folder_of(words_of(command, folder), folder) == out
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    (out / "maps" / "notes.txt").write_text("mine")
    done = run_here(*words_of(command, folder), "-q", "-o", f"{out}/")
    assert done.returncode == 2 and "another program wrote: 'maps/notes.txt'" in done.stderr
    (out / "maps" / "notes.txt").unlink()
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_the_policy_lets_no_markup_act(scene: tuple[str, Path, Path], browser: Any, tmp_path: Path) -> None:
    for path in (path for path in scene[2].rglob("*") if path.is_file()):
        (tmp_path / path.relative_to(scene[2])).parent.mkdir(exist_ok=True)
        (tmp_path / path.relative_to(scene[2])).write_bytes(path.read_bytes())
    (tmp_path / "evil.js").write_text("window.pwned = 1")
    bad = "<script>window.pwned=1</script><script src=evil.js></script><img src=x onerror='window.pwned=1'>"
    index = tmp_path / "index.html"
    index.write_text(index.read_text().replace("<header>", f"{bad}<header>", 1))
    page = browser.new_page()
    page.goto(index.as_uri())
    page.wait_for_selector("[data-boxes=there]")
    assert page.evaluate("window.pwned === undefined")
    page.close()


def test_panels_have_the_pixels_of_the_maps(tmp_path: Path) -> None:
    """Two maps of 700 x 20 pixels that differ in the last 70 columns: the panels are scaled to the longer side."""
    for side, last in (("gt", 0), ("pred", 1)):
        (tmp_path / side).mkdir()
        pixels = np.zeros((20, 700), dtype=np.uint8)
        pixels[:, 630:] = last
        Image.fromarray(pixels).save(tmp_path / side / "a.png")
    out = folder_of(["pixels", tmp_path / "gt", tmp_path / "pred"], tmp_path)
    drawn = [np.asarray(Image.open(out / "maps" / f"000000-{layer}.png")) for layer in range(3)]
    assert {panel.shape for panel in drawn} == {(int(20 * LARGE / 700), LARGE, 3)}
    assert (drawn[0] == drawn[0][0, 0]).all()
    for panel in drawn[1:]:
        changed = np.flatnonzero((panel != panel[0, 0]).any(axis=(0, 2)))
        assert (changed[0], changed[-1]) == (LARGE * 630 // 700, LARGE - 1)


def test_a_saved_result_has_a_page_of_its_numbers(tmp_path: Path) -> None:
    words = words_of("pixels", tmp_path)
    saved = tmp_path / "r.json"
    assert run_here(*words, "-q", "-o", saved).returncode == 0
    done = run_here("report", saved, "-q", "-o", f"{tmp_path}/out/")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "index.html").is_file() and not (tmp_path / "out" / "maps").exists()


def test_paper_has_the_image_that_is_open(scene: tuple[str, Path, Path], opened: Opened) -> None:
    with opened(scene[2]) as page:
        page.evaluate("openImage(0); render()")
        page.emulate_media(media="print")
        assert page.locator("#panel").is_hidden() and page.locator("#grid").is_hidden()
        stage, reasons = (page.locator(of).bounding_box() for of in ("#stage", "#reasons"))
        assert stage["y"] + stage["height"] <= reasons["y"] + 1
        assert page.locator("#stage svg").count() == 3


def test_nothing_to_find_and_nothing_that_counts_are_folders_too(opened: Opened, tmp_path: Path) -> None:
    write_segments(tmp_path)
    gt = json.loads((tmp_path / "gt.json").read_text())
    for one in gt["annotations"]:
        one["segments_info"] = []
        Image.fromarray(np.zeros((SIDE, SIDE, 3), dtype=np.uint8)).save(tmp_path / "gt" / one["file_name"])
    write_json(tmp_path / "gt.json", gt)
    with opened(folder_of(["panoptic", tmp_path / "gt.json", tmp_path / "pred.json"], tmp_path)) as page:
        # All lies on void, and is ignored.
        assert page.locator("#empty").inner_text() == "Nothing is missed and nothing is false."
    for side in ("void", "found"):
        (tmp_path / side).mkdir()
        Image.fromarray(np.full((8, 8), VOID if side == "void" else 1, dtype=np.uint8)).save(tmp_path / side / "a.png")
    words = ["pixels", tmp_path / "void", tmp_path / "found", "--classes", "road,car", "--ignore", VOID]
    with opened(folder_of(words, tmp_path / "none")) as page:
        assert page.evaluate("sizeOf(selection)") == 0
