"""The folder of all images, opened from the disk: counts are selections, the address is the state, names are text."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_pages import EVERY_BUTTON, HOSTILE, drawn, until, write_coco
from command_line import box, run_here
from pictures import evaluate as evaluate_pictures

from jaccard_eval import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs import explorer

SAMPLE = Path(__file__).parents[2] / "sample_data"
TRUTH, BETTER, WORSE = (SAMPLE / "coco" / f"{name}.json" for name in ("gt", "better", "worse"))
IMAGES = SAMPLE / "yolo" / "images" / "val"
SCORES = (0.0, 0.29, 0.57, 0.83)


def of_pictures(**options: Any) -> EvaluationResult:
    return evaluate_pictures(*drawn(60), errors=True, **options)


def written(folder: Path, files: Any) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("scene"), explorer.render(of_pictures(), ReportOptions()))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    done = run_here("compare", TRUTH, BETTER, WORSE, "--images", IMAGES, "--bootstrap", "0", "-q", "-o", f"{folder}/r/")
    assert done.returncode == 0, done.stderr
    return folder / "r"


@pytest.fixture
def opened(browser: Any) -> Callable[..., Any]:
    """Open a folder; nothing but its own files and images of the disk may be asked for, and nothing said."""

    @contextmanager
    def opening(folder: Path, state: str = "", width: int = 1280, **settings: Any) -> Iterator[Any]:
        context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        page, noise = context.new_page(), []
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or noise.append(asked.url))
        page.goto(f"{(folder / 'index.html').as_uri()}#{state}")
        page.wait_for_selector("[data-boxes=there]")
        yield page
        context.close()
        assert noise == []

    return opening


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"class": "dog"},
        {"error": "false", "size": "medium"},
        {"error": "below"},
        {"size": "small", "score": "0.29"},
        {"object": "dog", "pred": "cat", "score": "0.29"},
        {"object": "", "pred": "a>b"},
        {"sure": "0.8", "class": "c=d&e#f"},
    ],
)
def test_every_count_is_the_number_of_boxes_that_it_selects(scene: Path, opened: Any, state: dict[str, str]) -> None:
    with opened(scene) as page:
        n, wrong = page.evaluate(EVERY_BUTTON, state)
        assert wrong == []
        assert n > 20


def test_what_one_model_alone_finds_is_counted_as_it_selects(pair: Path, opened: Any) -> None:
    with opened(pair) as page:
        for state in ({}, {"change": "won"}, {"change": "lost", "class": "person"}, {"model": "b", "size": "large"}):
            assert page.evaluate(EVERY_BUTTON, state)[1] == []
        page.evaluate("chosen = {}; render()")
        won, lost = page.evaluate("[tally.won, tally.lost]")
        assert won > 0
        page.evaluate("chosen = { model: 'b' }; render()")
        assert page.evaluate("[tally.lost, tally.won]") == [won, lost]


@pytest.mark.parametrize("score", SCORES)
def test_counts_are_those_of_the_library_at_any_score(scene: Path, opened: Any, score: float) -> None:
    result = of_pictures(score=score)
    points = [point for point in result.operating_points if point.iou == 0.5 and point.class_name is not None]
    with opened(scene) as page:
        page.evaluate("score => { chosen = { score: about.steps.find(text => +text === score) }; render(); }", score)
        tp, fp, fn = page.evaluate("(({ found, false: wrong, missed }) => [found, wrong, missed])(countsNow())")
        assert (tp, fp, fn) == tuple(sum(getattr(point, name) for point in points) for name in ("tp", "fp", "fn"))
        names = page.evaluate("about.classes")
        by_class = {str(point.class_name): [point.fn, point.fp] for point in points}
        assert page.evaluate("about.classes.map((_, i) => [tally.missed[i], tally.false[i]])") == [
            by_class[name] for name in names
        ]
        confusion = result.errors.confusion
        assert page.evaluate("[...tally.cells]")[:-1] == confusion.counts.ravel().tolist()[:-1]


def overlap(a: Any, b: Any) -> float:
    shared = np.clip(np.minimum(a[:2] + a[2:], b[:2] + b[2:]) - np.maximum(a[:2], b[:2]), 0, None).prod()
    return float(shared / (a[2:].prod() + b[2:].prod() - shared))


@pytest.mark.parametrize("score", SCORES)
def test_why_objects_are_missed_is_what_a_plain_loop_finds(scene: Path, opened: Any, score: float) -> None:
    """Found by a lower score; else taken for another class by a false positive; else one of its class beside it."""
    result = of_pictures()
    truth, found = result.boxes
    rows, expected = result.matches, {"nothing": 0, "below": 0, "off": 0, "taken": 0}
    tp, fp, gt = (np.asarray(rows[key]).reshape(len(rows["score"]), -1)[:, 0] for key in ("tp", "fp", "gt"))
    finder = {int(row): float(one) for row, one, hit in zip(gt, rows["score"], tp, strict=True) if hit}
    by_source = {int(source): row for row, source in enumerate(found.source)}
    wrong = [
        by_source[int(source)]
        for source, is_false, one in zip(rows["source"], fp, rows["score"], strict=True)
        if is_false and one >= score
    ]
    for row in np.flatnonzero(~truth.crowd).tolist():
        if row in finder:
            expected["below"] += finder[row] < score
            continue
        near = [(k, overlap(truth.xywh[row], found.xywh[k])) for k in wrong if found.image[k] == truth.image[row]]
        same = {k: found.label[k] == truth.label[row] for k, _ in near}
        if any(value >= 0.5 and not same[k] for k, value in near):
            expected["taken"] += 1
        elif any(0.1 <= value < 0.5 and same[k] for k, value in near):
            expected["off"] += 1
        else:
            expected["nothing"] += 1
    with opened(scene) as page:
        page.evaluate("score => { chosen = { score: about.steps.find(text => +text === score) }; render(); }", score)
        kinds = "Object.fromEntries([10, 11, 12, 13].map(code => [KINDS[code], tally.kinds[code]]))"
        assert page.evaluate(kinds) == expected
    assert sum(expected.values()) > 20


def test_the_address_holds_the_state_and_back_closes_an_image(scene: Path, opened: Any) -> None:
    with opened(scene, "class=c%3Dd%26e%23f&error=missed&score=0.29&show=boxes") as page:
        assert page.evaluate("chosen") == {"class": "c=d&e#f", "error": "missed", "score": "0.29", "show": "boxes"}
        assert page.locator("#chips button").count() == 2
        assert page.get_by_role("button", name="Remove filter: c=d&e#f").is_visible()
        was = page.evaluate("location.hash")
        page.locator(".tile").first.click()
        assert page.locator("#view").is_visible()
        address = page.url
        page.go_back()
        page.wait_for_selector("#view", state="hidden")
        assert page.evaluate("addressOf(chosen)") == page.evaluate("location.hash") == was
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_selector("#view header")


def test_what_is_not_there_is_said(scene: Path, opened: Any, browser: Any, tmp_path: Path) -> None:
    with opened(scene, "img=none.jpg") as page:
        assert page.locator("#said").inner_text() == "There is no image “none.jpg” in this folder."
    with opened(scene, "class=horse") as page:
        assert "There is no class “horse” in this folder." in page.locator("#empty").inner_text()
    with opened(scene, "class=dog&error=double&sure=1&size=large") as page:
        ways = page.locator("#empty button").all_inner_texts()
        assert ways[-1] == "Clear all filters"
        page.get_by_role("button", name="Clear all filters").click()
        page.wait_for_selector(".tile")
    torn = written(tmp_path, explorer.render(of_pictures(), ReportOptions()))
    (torn / "data" / "a.js").unlink()
    page = browser.new_page()
    page.goto((torn / "index.html").as_uri())
    page.wait_for_selector(".torn >> text=data/a.js cannot be read")
    page.close()


def test_keys_go_through_tiles_images_and_failures(scene: Path, opened: Any) -> None:
    with opened(scene, "error=false") as page:
        images = page.evaluate("items.length")
        for key in "gpt+-0":  # of an open image alone
            page.keyboard.press(key)
        assert page.evaluate("Object.values(shows)") == [True] * 3
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_selector("#view header")
        assert page.locator("#view header .soft").inner_text() == f"2 of {images}"
        page.keyboard.press("k")
        until(page, f"get('view').textContent.includes('1 of {images}')")
        page.keyboard.press("f")
        assert page.locator("#reasons .hot").count() == 1
        whole = page.evaluate("frame")
        page.keyboard.press("0")
        assert page.evaluate("frame") != whole
        page.keyboard.press("t")
        until(page, "!shows.found")
        page.keyboard.press("t")
        page.keyboard.press("Escape")
        page.wait_for_selector("#view", state="hidden")
        page.keyboard.press("b")
        until(page, "chosen.show === 'boxes'")
        page.keyboard.press("Escape")
        until(page, "chosen.error === undefined")
        page.keyboard.press("/")
        page.keyboard.type("do")
        assert page.locator("#classes tbody tr").count() == 1
        page.keyboard.press("Escape")
        # A click on the left keeps the focus where it was.
        button = page.locator("#classes tbody button").first
        button.focus()
        page.keyboard.press("Enter")
        until(page, "chosen.class === 'dog'")
        assert page.evaluate("document.activeElement.textContent") == "dog"


INJECTED = (
    "document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.pwned=1'>`)",
    "document.body.insertAdjacentHTML('beforeend', `<a id=bad href='javascript:window.pwned=1'>x</a>`); bad.click()",
)


def test_markup_past_all_escaping_runs_nothing(scene: Path, browser: Any, tmp_path: Path) -> None:
    """An inline script, one of a file beside, a handler and an address of script: the policy blocks each."""
    folder = written(tmp_path, explorer.render(of_pictures(), ReportOptions()))
    (folder / "evil.js").write_text("window.pwned = 1")
    text = (folder / "index.html").read_text()
    bad = "<script>window.pwned=1</script><script src=evil.js></script><img src=x onerror='window.pwned=1'>"
    (folder / "index.html").write_text(text.replace("<header>", f"{bad}<header>", 1))
    page = browser.new_page()
    page.goto((folder / "index.html").as_uri())
    page.wait_for_selector("[data-boxes=there]")
    for code in INJECTED:
        page.evaluate(code)
    page.evaluate("new Promise(done => setTimeout(done))")
    assert page.evaluate("window.pwned === undefined")
    page.close()


def test_hostile_names_are_text_and_select(opened: Any, tmp_path: Path) -> None:
    names = [*HOSTILE, "a>b", "c=d&e#f"]
    images = [f"{i} #?% {name.replace('/', '')[:40]}.jpg" for i, name in enumerate(names)]
    boxes = [box(1 + i, 1 + i, [10, 10, 40 + i, 30]) for i in range(len(names))]
    found = [dict(one, score=0.9) for one in boxes]
    found[-1]["category_id"] = 1
    sides = write_coco(tmp_path / "in", names, images, boxes, found)
    done = run_here(*sides, "-q", "--title", HOSTILE[0], "-o", f"{tmp_path}/out/")
    assert done.returncode == 0, done.stderr
    with opened(tmp_path / "out") as page:
        assert page.evaluate(EVERY_BUTTON, {})[1] == []
        for name in page.evaluate("about.classes"):
            page.evaluate("name => { chosen = { class: name }; remember(); render(); }", name)
            assert page.evaluate("readAddress().class") == name
            page.evaluate("chosen = { ...chosen, error: 'found' }; render()")
            assert page.evaluate("total(Object.values(selection.counts))") == (name != "c=d&e#f")
        page.evaluate("openImage(0); render()")
        assert page.evaluate("window.pwned === undefined")


def test_images_of_odd_names_are_shown_from_where_they_lie(opened: Any, tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "img").mkdir()
    names = ["a #1?.png", "100%.png"]
    for name in names:
        Image.new("RGB", (64, 48), "red").save(tmp_path / "img" / name)
    boxes = [box(1 + i, 1, [5, 5, 20, 20]) for i in range(2)]
    sides = write_coco(tmp_path / "in", ["dog"], names, boxes, [])
    done = run_here(*sides, "--images", tmp_path / "img", "-q", "-o", f"{tmp_path}/out/")
    assert done.returncode == 0, done.stderr
    with opened(tmp_path / "out") as page:
        until(page, "all('.tile image').length === 2")


def test_small_copies_are_shown_where_the_originals_are_gone(opened: Any, tmp_path: Path) -> None:
    done = run_here(TRUTH, WORSE, "--images", IMAGES, "--thumbnails", "-q", "-o", f"{tmp_path}/out/")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out" / "thumbs").iterdir())) == 12
    head = tmp_path / "out" / "data" / "head.js"
    head.write_text(head.read_text().replace("street_", "gone_"))
    context_noise = "net::ERR_FILE_NOT_FOUND"
    with pytest.raises(AssertionError, match=context_noise), opened(tmp_path / "out") as page:
        until(page, "all('.tile image').length >= 4")
        page.locator(".tile").first.click()
        page.wait_for_selector("#stage image")


def test_labels_hide_at_most_a_third_of_a_small_box(scene: Path, opened: Any) -> None:
    with opened(scene) as page:
        worst = page.evaluate(
            """() => {
              let worst = 0, n = 0;
              for (const row of items.slice(0, 20)) {
                openImage(row); render();
                const [{ visible, tags, size }] = stages;
                for (const label of all('rect', tags)) {
                  n++;
                  const spot = ['x', 'y', 'width', 'height'].map(side => +label.getAttribute(side));
                  const small = visible.filter(({ box }) => box[2] * box[3] < .25 * size[0] * size[1]);
                  worst = Math.max(worst, ...small.map(({ box }) => hidden(spot, box)));
                }
              }
              return [n, worst];
            }"""
        )
        assert worst[0] > 10
        assert worst[1] <= 0.3


def test_the_selection_is_saved_as_csv(scene: Path, opened: Any) -> None:
    with opened(scene, "error=false") as page:
        with page.expect_download() as download:
            page.locator("#csv").click()
        lines = Path(download.value.path()).read_text().splitlines()
        assert lines[0] == "image,class,what,score,x,y,width,height,why"
        assert len(lines) - 1 == page.evaluate("total(Object.values(selection.counts))")


STATES = ("", "show=boxes&error=false", "img=000.jpg", "class=dog&error=double&sure=1")


def test_axe_finds_nothing_and_nothing_runs_over_390_px(scene: Path, pair: Path, opened: Any) -> None:
    import axe_playwright_python

    axe = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    for folder, state in [*((scene, state) for state in STATES), (pair, "img=street_04.png&pair=1")]:
        with opened(folder, state) as page:
            page.evaluate(axe)
            for scheme, rules in (("light", "{}"), ("dark", "{runOnly: ['color-contrast']}")):
                page.emulate_media(color_scheme=scheme)
                found = page.evaluate(f"axe.run(document, {rules})")
                assert [(one["id"], one["nodes"][0]["html"][:150]) for one in found["violations"]] == []
            for width in (390, 800):
                page.set_viewport_size({"width": width, "height": 844})
                assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("n", [9, 1_234_567])
@pytest.mark.parametrize("width", [390, 800, 1280])
def test_no_number_lies_on_another(scene: Path, opened: Any, width: int, n: int) -> None:
    with opened(scene, width=width) as page:
        page.evaluate("n => { tally.kinds.fill(n); drawPanel(); }", n)
        missed, false, whole = page.evaluate(
            """[...all(".two table"), get("panel")].map(one => {
              const { left, top, right, bottom } = one.getBoundingClientRect();
              return { left, top, right, bottom };
            })"""
        )
        assert missed["right"] <= false["left"] or missed["bottom"] <= false["top"]
        assert max(missed["right"], false["right"]) <= whole["right"]


def test_the_image_of_a_link_is_in_sight_on_a_phone(scene: Path, opened: Any) -> None:
    with opened(scene, "img=000.jpg", width=390) as page:
        assert page.evaluate("get('stage').getBoundingClientRect().bottom <= innerHeight")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_name_takes_no_room_of_others(opened: Any, tmp_path: Path, width: int) -> None:
    long = "x" * 300
    boxes = [box(1, 1, [10, 10, 40, 30]), box(1, 2, [90, 90, 40, 30])]
    found = [dict(one, category_id=3 - one["category_id"], score=0.9) for one in boxes]
    sides = write_coco(tmp_path / "in", [long, "dog"], [f"{'y' * 300}.jpg"], boxes, found)
    done = run_here(*sides, "-q", "-o", f"{tmp_path}/out/")
    assert done.returncode == 0, done.stderr
    for state in (f"class={long}", f"object={long}&pred=dog", f"object={long}&pred=dog&size=large"):
        with opened(tmp_path / "out", state, width=width) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate("get('selection').offsetHeight") < 140
            wide = "all('#classes, #grid, #empty').filter(one => one.scrollWidth > one.clientWidth).map(one => one.id)"
            assert page.evaluate(wide) == []


def test_a_move_of_the_slider_goes_over_the_boxes_once(scene: Path, opened: Any) -> None:
    with opened(scene) as page:
        # Nothing but a selection asks for this column.
        page.evaluate(
            """() => {
              const { as } = store;
              self.asked_for = 0;
              Object.defineProperty(store, "as", { get: () => { self.asked_for++; return as; } });
            }"""
        )
        moved = "state => { chosen = state; asked_for = 0; render(); return [asked_for, items.length > 0]; }"
        for i, (state, times) in enumerate((({}, 1), ({"class": "dog", "size": "medium"}, 1), ({"sort": "worst"}, 2))):
            score = page.evaluate("i => about.steps[about.start + i]", i + 1)
            assert page.evaluate(moved, {**state, "score": score}) == [times, True]


def test_paper_has_what_is_in_sight_and_no_blank_pages(opened: Any, tmp_path: Path) -> None:
    folder = written(tmp_path, explorer.render(evaluate_pictures(*drawn(700), errors=True), ReportOptions()))
    with opened(folder) as page:
        tiles = page.evaluate("tiles.size")
        page.emulate_media(media="print")
        shown = "all('.tile').map(one => one.getBoundingClientRect()).filter(box => box.width && box.height).length"
        assert page.evaluate(shown) == tiles > 8
        assert page.locator("#tools").is_hidden() and page.locator("#panel").is_visible()
        # The column of all 700 images would fill dozens.
        assert 2 <= page.pdf().count(b"/Type /Page\n") + page.pdf().count(b"/Type /Page /") <= 8
        page.emulate_media(media="screen")
        page.evaluate("openImage(0); render()")
        page.emulate_media(media="print")
        assert page.locator("#stage svg").is_visible() and page.locator("#reasons").is_visible()


def test_few_tiles_are_alive_and_the_data_are_small(opened: Any, tmp_path: Path) -> None:
    result = evaluate_pictures(*drawn(700), errors=True)
    files = explorer.render(result, ReportOptions())
    folder = written(tmp_path, files)
    n = sum(map(len, result.boxes))
    assert len(files["data/a.js"]) / n < 20  # with names, of which each image has seven boxes
    with opened(folder) as page:
        assert page.evaluate("items.length") > 500
        page.evaluate("get('grid').scrollTop = 1e9")
        until(page, "tiles.has(items.length - 1)")
        assert page.evaluate("tiles.size") <= 40


def test_the_same_bytes_twice_and_no_data_that_is_not_json(scene: Path) -> None:
    files = explorer.render(of_pictures(), ReportOptions())
    assert files == explorer.render(of_pictures(), ReportOptions())
    for name in ("head", "a"):
        content = files[f"data/{name}.js"].decode().removeprefix(f'loaded("{name}",').removesuffix(")\n")
        json.loads(content, parse_constant=pytest.fail)
