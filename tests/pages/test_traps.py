"""What a folder can get wrong without being noticed, on one scene: many classes, many objects, ties, odd numbers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_pages import until, write_coco
from command_line import box, run_here
from PIL import Image

N_CLASSES, CROWDED = 260, 300  # more than a byte holds, of classes and of objects in one image
LAST = N_CLASSES - 1
NAMES = [f"class {i}" for i in range(N_CLASSES - 2)] + ["=SUM(1)", "unseen"]
FILES = ["a/1.jpg", "b/1.jpg", "c/1.png"]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traps")
    for name in FILES:
        (folder / "img" / name).parent.mkdir(parents=True)
        Image.new("RGB", (640, 480), "white").save(folder / "img" / name)
    # 300 objects in the first image; the last one is found as a class behind the 255th, with IoU 9 / 10.
    truth = [box(1, 1, [20 * (i % 30), 20 * (i // 30), 10, 10]) for i in range(CROWDED)]
    places = [one["bbox"][:2] for one in truth]
    found = [dict(box(1, 1, [x, y + 1, 10, 10]), score=0.9) for x, y in places[:-1]]
    x, y = places[-1]
    found.append(dict(box(1, LAST, [x, y, 10, 9]), score=0.95))
    # (100 - 33.37) / (100 + 33.37) = .49959 is no .50; a crowd takes a detection, and neither counts.
    truth += [box(2, 2, [0, 0, 100, 100]), dict(box(2, 3, [200, 200, 100, 100]), iscrowd=1)]
    found += [dict(box(2, 2, [33.37, 0, 100, 100]), score=0.4), dict(box(2, 3, [210, 210, 50, 50]), score=0.9)]
    # Rounded to the nearest, 57 / 100 of these would be lost at .57.
    truth += [box(3, 4, [20 * i, 0, 10, 10]) for i in range(3)]
    found += [dict(box(3, 4, [20 * i, 1, 10, 10]), score=score) for i, score in enumerate((0.57, 0.5699999, 0.58))]
    found.append(dict(box(3, 5, [300, 300, 10, 10]), score=0.001))
    sides = write_coco(folder / "in", NAMES, FILES, truth, found)
    words = (*sides, "--images", folder / "img", "--thumbnails", "--max-dets", "none", "-q", "-o", f"{folder}/out/")
    assert run_here(*words).returncode == 0
    return folder / "out"


@pytest.fixture(scope="module")
def page(out: Path, browser: Any) -> Iterator[Any]:
    made, noise = browser.new_page(viewport={"width": 1280, "height": 900}), []
    made.on("pageerror", lambda error: noise.append(str(error)))
    made.on("console", lambda message: noise.append(message.text))
    made.goto((out / "index.html").as_uri())
    made.wait_for_selector("[data-boxes=there]")
    yield made
    made.close()
    assert noise == []


WHY = """([state, name]) => {
  chosen = { ...state, show: "boxes" };
  render();
  return items.filter(place => nameOf(place) === name).map(place => [lookOf(place), whyOf(place)]);
}"""
COUNTS = "score => { chosen = { score }; render(); return countsNow(); }"
# Each trap: what a page is asked, with what, and what it answers.
TRAPS: dict[str, tuple[str, Any, Any]] = {
    "a class behind the 255th, on an object behind the 255th": (
        *(WHY, [{"error": "class"}, NAMES[LAST - 1]]),
        [["false", "wrong class: is class 0, IoU 0.90"]],
    ),
    "an object behind the 255th, on which another class lies": (
        *(WHY, [{"error": "taken"}, NAMES[0]]),
        [["missed", f"detected as {NAMES[LAST - 1]} at 0.95"]],
    ),
    "an IoU below a half reads as no half": (
        WHY,
        [{"error": "box", "score": "0.40"}, NAMES[1]],
        [["false", "box is off: IoU 0.49"]],
    ),
    "crowds and what they take count nowhere": (
        "state => { chosen = { score: '0.40' }; render(); return [tally.missed[2], tally.false[2]]; }",
        *({}, [0, 0]),
    ),
    # Of 304 objects that count 299 and those of the last image are found; of the others one is false from .95 down,
    # and the moved one from .40 down.
    "a score of a step counts, one just below does not": (COUNTS, "0.57", {"missed": 3, "false": 1, "found": 301}),
    "one step above, it does not": (COUNTS, "0.58", {"missed": 4, "false": 1, "found": 300}),
    "the lowest score": (COUNTS, "0.00", {"missed": 2, "false": 3, "found": 302}),
    # Every step from .41 to .56 has the best F1: 302 found, one false, two missed. At .57 there is one less.
    "the first step is the highest of equal ones": ("() => about.steps[about.start]", None, "0.56"),
    "a class without objects has no AP": (f"() => about.values[{LAST}]", None, None),
    "a formula is text in a table": (
        "() => { chosen = { class: '=SUM(1)' }; render(); return csvOf(boxRows(selection.marks)).split(',')[9]; }",
        *(None, "'=SUM(1)"),
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_traps(trap: str, page: Any) -> None:
    code, given, expected = TRAPS[trap]
    assert page.evaluate(code, given) == expected


def test_small_copies_are_named_by_number_and_data_have_no_nan(out: Path) -> None:
    assert sorted(path.name for path in (out / "thumbs").iterdir()) == ["000000.jpg", "000001.jpg", "000002.jpg"]
    text = (out / "data" / "a.js").read_text().removeprefix('loaded("a",').removesuffix(")\n")
    assert json.loads(text, parse_constant=pytest.fail)["values"][LAST] is None


def test_a_slider_fills_no_history_and_the_focus_stays(page: Any) -> None:
    page.evaluate("chosen = {}; remember(); render()")
    before = page.evaluate("history.length")
    page.locator("#score").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        page.evaluate("render()")
    assert page.evaluate("[history.length, document.activeElement.id]") == [before, "score"]
    assert page.evaluate("chosen.score") == "0.59"
    for selector in ("#panel .two button", "#classes tbody button", ".matrix button"):
        button = page.locator(selector).first
        button.focus()
        key = button.get_attribute("data-key")
        page.keyboard.press("Enter")
        page.evaluate("render()")
        assert page.evaluate("document.activeElement.dataset.key") == key
        page.evaluate("chosen = {}; render()")


def test_fingers_zoom_around_what_lies_between_them(page: Any) -> None:
    page.evaluate("chosen = {}; render(); openImage(0); render()")
    page.evaluate(
        """() => {
          const [{ picture }] = stages, { left, top, width, height } = picture.getBoundingClientRect();
          const say = (kind, pointerId, x) => picture.dispatchEvent(new PointerEvent(kind, {
            pointerId, clientX: left + x * width, clientY: top + height / 2, bubbles: true,
          }));
          say("pointerdown", 1, .4); say("pointerdown", 2, .6);
          say("pointermove", 1, .3); say("pointermove", 2, .7);
        }"""
    )
    # Twice as far apart: half of the image is in sight.
    assert page.evaluate("frame[2]") == pytest.approx(320, rel=0.01)
    page.keyboard.press("Escape")
    page.wait_for_selector("#view", state="hidden")


def test_a_moved_folder_works_and_without_a_script_it_names_its_numbers(
    out: Path, browser: Any, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere"
    for path in (path for path in out.rglob("*") if path.is_file()):
        (moved / path.relative_to(out)).parent.mkdir(parents=True, exist_ok=True)
        (moved / path.relative_to(out)).write_bytes(path.read_bytes())
    page = browser.new_page()
    page.goto((moved / "index.html").as_uri())
    until(page, "all('.tile image').length === 2")  # nothing is wrong in the third one
    page.close()
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((moved / "index.html").as_uri())
    assert page.locator("noscript a").get_attribute("href") == "numbers.html"
    context.close()


def test_more_boxes_than_a_browser_opens_are_refused(
    out: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("jaccard_eval.features.evaluate.page.MOST_BOXES", 10)
    done = run_here(
        out.parent / "in" / "gt.json",
        out.parent / "in" / "pred.json",
        "--max-dets",
        "none",
        "-q",
        "-o",
        f"{tmp_path}/out/",
    )
    assert done.returncode == 2 and "--score-min" in done.stderr.replace("--min-score", "--score-min")
    assert not (tmp_path / "out").exists()
