"""The script of a page in a real browser: at each step of the slider its numbers are those of an evaluation there."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pictures import det, gt
from pictures import evaluate as evaluate_pictures

from jaccard_eval import EvaluationResult, evaluate
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.outputs.html import render

# Move the slider as a user does, and read all that follows it.
MOVE = """score => {
  const slider = document.getElementById("slider");
  slider.value = score;
  slider.dispatchEvent(new Event("input"));
}"""
READ = """() => {
  const texts = cells => [...cells].map(cell => cell.textContent);
  const live = within => Object.fromEntries([...within.querySelectorAll("[data-live]")]
    .map(cell => [cell.dataset.live, cell.textContent]));
  const rows = [...document.querySelectorAll("#classes tbody tr")];
  return {
    pooled: live(document.querySelector("#score")),
    classes: Object.fromEntries(rows.map(row => [row.cells[0].textContent, live(row)])),
    matrix: [...document.querySelectorAll(".matrix tr")].map(row => texts(row.cells)),
    said: document.getElementById("slider").getAttribute("aria-valuetext"),
  };
}"""
READ_ALL = f"scores => scores.map(score => {{ ({MOVE})(score); return ({READ})(); }})"


class Opened:
    """A page in the browser, whose console stays silent."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.messages: list[str] = []
        self.page = browser.new_page(viewport={"width": 1280, "height": 900})
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.goto(path.as_uri())


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    opened: list[Opened] = []

    def open_one(result: EvaluationResult, **options: Any) -> Any:
        path = tmp_path / f"{len(opened)}.html"
        path.write_text(render(result, ReportOptions(**options)), encoding="utf-8")
        opened.append(Opened(browser, path))
        return opened[-1].page

    yield open_one
    for one in opened:
        one.page.close()
        assert one.messages == []


@pytest.fixture(scope="module")
def sample() -> tuple[Path, Path]:
    folder = Path(__file__).parents[2] / "sample_data" / "coco"
    return folder / "gt.json", folder / "worse.json"


def counts_text(point: dict[str, Any]) -> dict[str, str]:
    """The numbers of an operating point of a document as reports write them."""
    ratios = {
        name: metric_text(math.nan if point[name] is None else point[name]) for name in ("precision", "recall", "f1")
    }
    return ratios | {name: f"{point[name]:,}" for name in ("tp", "fp", "fn")}


def check(shown: dict[str, Any], document: dict[str, Any], score: str) -> None:
    iou = document["errors"]["iou"]
    pooled, *classes = [point for point in document["operating_points"] if point["iou"] == iou]
    assert shown["pooled"] == {"score": score} | counts_text(pooled)
    if classes:
        assert shown["classes"] == {point["class"]: counts_text(point) for point in classes}
    expected = counts_text(pooled)
    assert shown["said"] == (
        f"{score}: precision {expected['precision']}, recall {expected['recall']}, F1 {expected['f1']}"
    )
    confusion = document["errors"]["confusion"]
    (_, *heads), *rows = shown["matrix"]
    assert heads == confusion["classes"]
    assert rows == [
        [name, *(f"{count:,}" for count in counts)]
        for name, counts in zip(confusion["classes"], confusion["counts"], strict=True)
    ]


def test_at_every_step_all_numbers_are_those_of_an_evaluation_at_that_score(
    sample: tuple[Path, Path], open_page: Any
) -> None:
    page = open_page(evaluate(*sample, errors=True))
    scores = [f"{k / 100:.2f}" for k in range(101)]
    for score, shown in zip(scores, page.evaluate(READ_ALL, scores), strict=True):
        check(shown, evaluate(*sample, score=float(score), errors=True).to_dict(), score)


@pytest.mark.slow
def test_real_images_follow_as_well(shared_data: Path, open_page: Any) -> None:
    sides = [
        shared_data / "faster-coco-eval/tests/dataset/cocoapi/instances_val2014_100.json",
        shared_data / "cocoapi/results/instances_val2014_fakebbox100_results.json",
    ]
    page = open_page(evaluate(*sides, errors=True))
    scores = [f"{k / 100:.2f}" for k in range(0, 101, 7)]
    for score, shown in zip(scores, page.evaluate(READ_ALL, scores), strict=True):
        document = evaluate(*sides, score=float(score), errors=True).to_dict()
        # Above forty classes the matrix has thirty.
        heads, confusion = shown["matrix"][0][1:], document["errors"]["confusion"]
        assert len(heads) == 31
        places = [confusion["classes"].index(name) for name in heads]
        cut = confusion | {"classes": heads, "counts": [[confusion["counts"][i][j] for j in places] for i in places]}
        check(shown, document | {"errors": document["errors"] | {"confusion": cut}}, score)


@pytest.mark.parametrize("protocol", ["voc2007", "voc2012"])
def test_other_protocols_follow_as_well(protocol: str, sample: tuple[Path, Path], open_page: Any) -> None:
    page = open_page(evaluate(*sample, protocol=protocol, errors=True))
    scores = ["0.00", "0.07", "0.29", "0.50", "0.57", "0.58", "1.00"]
    for score, shown in zip(scores, page.evaluate(READ_ALL, scores), strict=True):
        check(shown, evaluate(*sample, protocol=protocol, score=float(score), errors=True).to_dict(), score)


def test_what_stands_there_without_script_is_what_the_script_begins_with(
    sample: tuple[Path, Path], browser: Any, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_text(render(evaluate(*sample, score=0.123, errors=True), ReportOptions()), encoding="utf-8")
    with_script = Opened(browser, path)
    shown = with_script.page.evaluate(READ)
    check(shown, evaluate(*sample, score=0.123, errors=True).to_dict(), "0.123")
    with_script.page.evaluate(MOVE, "0.12")  # the stop where the thumb stands already
    check(with_script.page.evaluate(READ), evaluate(*sample, score=0.12, errors=True).to_dict(), "0.12")
    with_script.page.evaluate(MOVE, "0.13")
    check(with_script.page.evaluate(READ), evaluate(*sample, score=0.13, errors=True).to_dict(), "0.13")
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(path.as_uri())
    assert [cell.text_content() for cell in plain.locator(".matrix td").all()] == [
        text for row in shown["matrix"][1:] for text in row[1:]
    ]
    assert [cell.text_content() for cell in plain.locator("[data-live]").all()] == [
        *shown["pooled"].values(),
        *(text for row in shown["classes"].values() for text in row.values()),
    ]
    assert plain.locator("th button, .option").count() == 0
    context.close()
    with_script.page.close()


def test_keys_move_the_slider_by_hundredths(sample: tuple[Path, Path], open_page: Any) -> None:
    page = open_page(evaluate(*sample, score=0.5, errors=True))
    slider = page.get_by_label("Score threshold")
    slider.focus()
    assert slider.get_attribute("aria-valuetext").startswith("0.50:")
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext").startswith("0.51:")
    page.keyboard.press("Home")
    assert slider.get_attribute("aria-valuetext").startswith("0.00:")


def test_a_ratio_between_two_digits_is_rounded_as_python_does(open_page: Any) -> None:
    # 1 of 32 is .03125 and 3 of 32 .09375: to even, .0312 and .0938.
    truth = [gt(f"dog {20 * i} 0 10 10") for i in range(32)]
    found = [det(f"dog {20 * i} 0 10 10", 0.9 - i / 10) for i in range(3)]
    page = open_page(evaluate_pictures(truth, found, errors=True))
    recalls = [shown["pooled"]["recall"] for shown in page.evaluate(READ_ALL, ["0.9", "0.8", "0.7", "1"])]
    assert recalls == [metric_text(tp / 32) for tp in (1, 2, 3, 0)]
    assert recalls == ["0.0312", "0.0625", "0.0938", "0.0000"]


def test_a_ratio_is_0_or_1_only_where_it_is_exact(open_page: Any) -> None:
    # A hundred to an image, as more of a class are dropped.
    found = [det(f"dog {20 * (i % 100)} 0 10 10", 0.5, f"{i // 100}") for i in range(20_100)]
    page = open_page(evaluate_pictures([gt("dog 0 0 10 10", "0")], found, errors=True), gallery=0)
    page.evaluate(MOVE, "0.3")
    assert page.evaluate(READ)["pooled"]["precision"] == metric_text(1 / 20_100) == "0.0001"


def names(page: Any) -> list[str]:
    return [row.text_content() for row in page.locator("#classes tbody th:visible").all()]


def test_the_class_table_is_sorted_by_its_heads(sample: tuple[Path, Path], open_page: Any) -> None:
    page = open_page(evaluate(*sample, score=0.5, errors=True))
    points = evaluate(*sample, score=0.5).operating_points
    precision = {point.class_name: point.precision for point in points if point.class_name and point.iou == 0.5}
    head = page.locator("#classes thead th", has_text="precision")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    defined = {name for name in precision if precision[name] == precision[name]}
    shown = names(page)
    values = [precision[name] for name in shown if name in defined]
    assert values == sorted(values, reverse=True)
    assert set(shown[: len(defined)]) == defined  # undefined ones are last, whatever the direction
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    values = [precision[name] for name in names(page) if name in defined]
    assert values == sorted(values)
    assert set(names(page)[: len(defined)]) == defined
    page.locator("#classes thead th", has_text="class").get_by_role("button").click()
    assert names(page) == sorted(precision)
    assert page.locator("#classes [aria-sort]").count() == 1


def test_counts_with_thousands_are_sorted_as_numbers(open_page: Any) -> None:
    numbers = {"a": 999, "b": 1000, "c": 20}
    found = [det(f"{name} {20 * i} 0 10 10", 0.5, f"{i // 100}") for name, n in numbers.items() for i in range(n)]
    truth = [gt(f"{name} 0 50 10 10", "0") for name in numbers]
    page = open_page(evaluate_pictures(truth, found, errors=True), gallery=0)
    page.evaluate(MOVE, "0.3")
    page.locator("#classes thead th", has_text="FP").get_by_role("button").click()
    assert names(page) == ["b", "a", "c"]


def test_classes_are_filtered_by_text(sample: tuple[Path, Path], open_page: Any) -> None:
    page = open_page(evaluate(*sample, errors=True))
    everything = names(page)
    page.get_by_label("Filter classes").fill("C")
    assert names(page) == [name for name in everything if "c" in name]
    page.get_by_label("Filter classes").fill("")
    assert names(page) == everything


def test_a_picked_class_is_followed_through_curves_matrix_and_images(sample: tuple[Path, Path], open_page: Any) -> None:
    result = evaluate(*sample, score=0.5, errors=True)
    page = open_page(result)
    key = str([row.name for row in result.per_class].index("dog"))
    n_images = page.locator(".shots > li:visible").count()
    button = page.locator("#classes tbody").get_by_role("button", name="dog", exact=True)
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert set(page.locator(".picked").evaluate_all("all => all.map(e => e.dataset.key)")) == {key}
    assert page.locator("#curves path.picked").count() == 3
    assert page.locator(".matrix .picked").count() >= 2
    [point] = [one for one in result.operating_points if one.class_name == "dog" and one.iou == 0.5]
    with_dogs = page.locator(".shots > li:visible").count()
    assert 0 < with_dogs < n_images
    parts = f"{point.fn} missed, {point.fp} false, {point.tp} found"
    status = f"dog: {point.fn + point.fp + point.tp} boxes in {with_dogs} of the {result.gt.images} images ({parts})"
    assert page.locator("#images [role=status]").text_content() == status
    button.click()
    assert page.locator(".picked").count() == 0
    assert page.locator(".shots > li:visible").count() == n_images


def test_a_curve_tells_recall_precision_and_score(sample: tuple[Path, Path], open_page: Any) -> None:
    result = evaluate(*sample, score=0.5, errors=True)
    page = open_page(result)
    label = [row.name for row in result.per_class].index("person")
    page.locator("#classes tbody").get_by_role("button", name="person", exact=True).click()
    figure = page.locator("#curves figure").first
    figure.focus()
    for at in range(1, 101):
        page.keyboard.press("ArrowRight")
        if at % 20:
            continue
        precision = result.curves.precision[0, at, label, 0, -1]
        expected = f"person: recall {at / 100:.3f}, precision {metric_text(precision)}"
        told = figure.locator("output").text_content()
        if precision > 0:
            score = float(told.rpartition("score ")[2])
            exact = result.curves.scores[0, at, label, 0, -1]
            assert score <= exact < score + 0.01 + 1e-9  # the last stop that reaches the recall
            expected += f", score {score:.2f}"
        assert told == expected
    box = figure.locator("svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] * (46 + 0.5 * 400) / 460, box["y"] + box["height"] / 2)
    assert figure.locator("output").text_content().startswith("person: recall 0.500, ")


def test_only_confused_classes_are_there_at_first_and_shares_on_demand(open_page: Any) -> None:
    # Twelve classes; an object of each is found, and one more of c0 is taken for c1.
    truth = [gt(f"c{k} {30 * k} 0 10 10") for k in range(12)] + [gt("c0 0 50 10 10")]
    found = [det(f"c{k} {30 * k} 0 10 10", 0.9) for k in range(12)] + [det("c1 0 50 10 10", 0.8)]
    page = open_page(evaluate_pictures(truth, found, errors=True, score=0.5))
    assert page.locator(".matrix thead th:visible").all_text_contents() == ["ground truth", "c0", "c1", "background"]
    assert page.locator(".matrix tbody td:visible").all_text_contents() == ["1", "1", "0", "0", "1", "0", "0", "0", "0"]
    page.get_by_label("Shares of rows").check()
    assert page.locator(".matrix tbody td:visible").all_text_contents()[:3] == ["0.5000", "0.5000", "0.0000"]
    page.get_by_label("Only confused classes").uncheck()
    assert page.locator(".matrix thead th:visible").count() == 14
    page.get_by_label("Shares of rows").uncheck()
    assert page.locator(".matrix tbody tr").nth(2).locator("td:visible").all_text_contents()[2] == "1"


def test_a_cell_of_the_matrix_chooses_its_images(open_page: Any) -> None:
    truth = [gt("cat 0 0 10 10", "a"), gt("dog 0 0 10 10", "b"), gt("dog 0 0 10 10", "c")]
    found = [det("cat 0 0 10 10", 0.9, "a"), det("cat 0 0 10 10", 0.9, "b"), det("dog 0 0 10 10", 0.9, "c")]
    page = open_page(evaluate_pictures(truth, found, errors=True, score=0.5))

    def shown() -> list[str]:
        return sorted(page.locator(".shots > li:visible b").all_text_contents())

    rows = page.locator(".matrix tbody tr")
    before = shown()
    rows.nth(1).locator("td").nth(0).click()  # dogs taken for cats
    assert shown() == ["b"]
    rows.nth(1).locator("td").nth(1).click()  # dogs that are found
    assert shown() == [name for name in before if name == "c"]
    rows.nth(1).locator("td").nth(1).click()
    assert shown() == before


def test_the_cells_of_the_matrix_are_reached_and_chosen_by_keys(open_page: Any) -> None:
    truth = [gt("cat 0 0 10 10", "a"), gt("dog 0 0 10 10", "b"), gt("dog 0 0 10 10", "c")]
    found = [det("cat 0 0 10 10", 0.9, "a"), det("cat 0 0 10 10", 0.9, "b"), det("dog 0 0 10 10", 0.9, "c")]
    page = open_page(evaluate_pictures(truth, found, errors=True, score=0.5))
    cells = page.locator(".matrix tbody td")
    assert page.locator(".matrix td[tabindex='0']").count() == 1
    cells.first.focus()
    for key in ("ArrowUp", "ArrowLeft", "ArrowDown"):  # the first two lead out of the matrix, and nowhere
        page.keyboard.press(key)
    assert page.evaluate("[document.activeElement.parentElement.rowIndex, document.activeElement.cellIndex]") == [2, 1]
    assert page.locator(".matrix td[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    assert page.locator(".shots > li:visible b").all_text_contents() == ["b"]
    page.keyboard.press("Enter")
    assert page.locator(".shots > li:visible b").count() > 1


def test_hostile_class_names_are_text(open_page: Any) -> None:
    hostile = ("<img/src=x/onerror=alert(1)>", "</script><script>alert(2)</script>")
    places = ("0 0 10 10", "50 0 10 10")
    truth = [gt(f"{name} {place}") for name, place in zip(hostile, places, strict=True)]
    found = [det(f"{name} {place}", 0.9) for name, place in zip(hostile, reversed(places), strict=True)]
    page = open_page(evaluate_pictures(truth, found, errors=True))
    page.evaluate(MOVE, "0.4")
    page.get_by_label("Shares of rows").check()
    for at, name in enumerate(hostile, start=1):
        page.get_by_role("button", name=name, exact=True).click()
        page.locator("#curves figure").first.focus()
        page.keyboard.press("ArrowRight")
        assert page.locator("#curves output").first.text_content().startswith(f"{name}: recall 0.0{at}0")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == page.evaluate("document.scripts.length")
    assert {"ground truth", *hostile} < set(page.locator(".matrix th").all_text_contents())
