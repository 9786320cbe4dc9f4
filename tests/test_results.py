"""What every result can do by itself: save reports, become a table or a figure, and show itself in a notebook."""

import base64
import html.parser
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_here, write_pair

import jaccard_eval
from jaccard_eval import BoxTable, UsageError
from jaccard_eval.data.result import Result
from jaccard_eval.findings import Severity

ROOT = Path(__file__).parents[1]
COCO = ROOT / "sample_data" / "coco"
SEGMENTS = COCO.parent / "panoptic"
GT, BETTER, WORSE = COCO / "gt.json", COCO / "better.json", COCO / "worse.json"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>$x^2$\x1b[31m\n& \"'"


def overlap_gt() -> BoxTable:
    return BoxTable.from_arrays(["a.jpg", HOSTILE], ["dog", HOSTILE], [[0, 0, 10, 10], [20, 20, 40, 40]])


def overlap_pred() -> BoxTable:
    return BoxTable.from_arrays(
        ["a.jpg", HOSTILE, "a.jpg"],
        ["dog", HOSTILE, f"other {HOSTILE}"],
        [[0, 0, 10, 10], [20, 20, 41, 40], [0, 0, 5, 5]],
        score=[0.9, 0.8, 0.7],
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Result]:
    """One of each kind, of data whose names are hostile where it comes from memory."""
    gt, pred, folder = overlap_gt(), overlap_pred(), tmp_path_factory.mktemp("results")
    maps = {side: folder / f"{side}.npy" for side in ("gt", "pred")}
    np.save(maps["gt"], np.array([[0, 1], [1, 1]]))
    np.save(maps["pred"], np.array([[0, 1], [0, 1]]))
    evaluation = jaccard_eval.evaluate(gt, pred, score=0.5)
    saved = folder / "run.json"
    jaccard_eval.evaluate(GT, BETTER).save(saved)
    return {
        "evaluation": evaluation,
        "comparison": jaccard_eval.compare(gt, [pred] * 30),
        "explanation": jaccard_eval.explain(gt, pred),
        "inspection": jaccard_eval.inspect(gt, pred),
        "sensitivity": jaccard_eval.sensitivity(gt, pred),
        "panoptic": jaccard_eval.panoptic(SEGMENTS / "gt.json", SEGMENTS / "worse.json"),
        "pixels": jaccard_eval.pixels(maps["gt"], maps["pred"], classes=["road", HOSTILE]),
        "gate": jaccard_eval.gate(evaluation, ["AP50>=0.999", "AP50<=1"]),
        "verification": jaccard_eval.verify(saved, GT, BETTER),
    }


KINDS = (
    "evaluation",
    "comparison",
    "explanation",
    "inspection",
    "sensitivity",
    "panoptic",
    "pixels",
    "gate",
    "verification",
)


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(f"{name}={value}" for name, value in attrs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_repr_is_short_and_ends_with_the_codes_of_warnings(kind: str, results: Mapping[str, Result]) -> None:
    result = results[kind]
    text = repr(result)
    assert len(text) <= (1_500 if kind == "comparison" else 1_000)
    assert text.startswith(f"<{type(result).__name__} ")
    codes = [finding.code for finding in result.findings if finding.severity is Severity.WARNING]
    n = "1 warning: " if len(codes) == 1 else f"{len(codes)} warnings: "
    assert text.endswith(f"\n{n}{', '.join(dict.fromkeys(codes))}" if codes else ">")
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("kind", KINDS)
def test_html_is_inert_and_loads_nothing(kind: str, results: Mapping[str, Result]) -> None:
    require_inert(results[kind]._repr_html_())


def require_inert(text: str) -> None:
    """Fail where a piece of HTML, or an image in it, holds anything that is run or loaded, or that an input wrote."""
    found = Tags()
    found.feed(text)
    found.close()
    known = {"div", "p", "b", "h4", "table", "tr", "th", "td", "small", "code", "pre", "span", "details", "summary"}
    assert found.tags <= known | {"img", "br"}
    assert {attribute.partition("=")[0] for attribute in found.attributes} <= {"style", "src", "alt", "width"}
    styles = [text.removeprefix("style=") for text in found.attributes if text.startswith("style=")]
    assert not [style for style in styles if re.search(r"[^\w:;#%. -]", style)]
    assert "\x1b" not in text
    assert "$x" not in text  # a formula, to notebooks
    assert "://" not in text
    for source in (text.removeprefix("src=") for text in found.attributes if text.startswith("src=")):
        head, _, data = source.partition(",")
        assert head == "data:image/svg+xml;base64"
        elements = [*ElementTree.fromstring(base64.b64decode(data)).iter()]
        shapes = {"svg", "style", "title", "desc", "g", "path", "rect", "circle", "text", "image"}
        assert {element.tag.removeprefix("{http://www.w3.org/2000/svg}") for element in elements} <= shapes
        assert not [name for element in elements for name in element.attrib if name.startswith("on")]
        links = [value for element in elements for name, value in element.attrib.items() if "href" in name]
        assert all(link.startswith("data:image/") for link in links)


def test_columns_of_boxes_are_a_line_in_a_cell() -> None:
    result = jaccard_eval.evaluate(GT, BETTER)
    # One of 38 objects is found at all thresholds.
    assert repr(result.missed) == "<ByThreshold: 37 rows of image, class, source, missed>"
    assert repr(result.matches).startswith("<ByThreshold: 49 rows of image, class, ")


def test_the_worst_images_of_a_class_are_shown_when_asked_for() -> None:
    result = jaccard_eval.evaluate(overlap_gt(), overlap_pred(), score=0.5)
    # Both objects are found; the third box lies on the dog, a class that the ground truth does not have.
    assert repr(result.show_images(class_="dog")) == "no image has a miss or a false positive of dog"
    # One of two dogs is missed, the other is found; the cat is where no object is.
    gt = BoxTable.from_arrays(["a.jpg", "b.jpg", HOSTILE], ["dog", "dog", "cat"], [[0, 0, 10, 10]] * 3)
    pred = BoxTable.from_arrays(
        ["a.jpg", "b.jpg", HOSTILE], ["dog", "cat", "cat"], [[0, 0, 10, 10]] * 3, score=[0.9, 0.8, 0.7]
    )
    result = jaccard_eval.evaluate(gt, pred, score=0.5)
    assert repr(result.show_images(class_="dog")) == "b.jpg: 1 missed, 0 false, 0 found"
    assert repr(result.show_images(class_="cat", n=1)) == "b.jpg: 0 missed, 1 false, 0 found"
    assert repr(result.show_images()) == "b.jpg: 1 missed, 1 false, 0 found"
    shown = result.show_images(class_="dog")._repr_html_()
    require_inert(shown)
    drawn = ElementTree.fromstring(base64.b64decode(re.findall(r"base64,([^\"]+)", shown)[0]))
    titles = [title.text for title in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["dog, missed", "cat 0.80, false positive"]
    # Boxes of other classes are faint: dog is the first of the image, and number 0.
    assert '[data-c]:not([data-c="0"])' in str(next(drawn.iter("{http://www.w3.org/2000/svg}style")).text)
    for wrong, expected in (
        ({"class_": "dgo"}, "Did you mean 'dog'"),
        ({"n": 0}, "n must be"),
        ({"class_": 3}, "name"),
    ):
        with pytest.raises(UsageError, match=expected):
            result.show_images(**wrong)  # type: ignore[arg-type]


def test_images_of_hostile_names_are_shown_inert() -> None:
    pred = BoxTable.from_arrays([HOSTILE], [HOSTILE], [[50, 50, 60, 60]], score=[0.9])
    shown = jaccard_eval.evaluate(overlap_gt(), pred, score=0.5).show_images()
    assert len(repr(shown).splitlines()) == 2
    require_inert(shown._repr_html_())


def test_a_cell_draws_with_the_rules_of_the_page() -> None:
    curve = re.search(r"base64,([^\"]+)", jaccard_eval.evaluate(GT, WORSE)._repr_html_())
    assert curve is not None
    (style,) = ElementTree.fromstring(base64.b64decode(curve[1])).iter("{http://www.w3.org/2000/svg}style")
    page = (ROOT / "jaccard_eval/report/assets/page.css").read_text()
    for rule in ("svg .line.faint {", "svg .grid {", ".c2 {"):
        assert f"{rule}{page.partition(rule)[2].partition('}')[0]}}}" in str(style.text)
    assert "rect.false, path.false { stroke: var(--false)" in str(style.text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_saved_by_suffix_and_is_its_document(
    kind: str, results: Mapping[str, Result], tmp_path: Path
) -> None:
    result = results[kind]
    document, path = result.to_dict(), tmp_path / "result.json"
    result.save(str(path))
    saved = json.loads(path.read_text())
    # What reports have without being asked, and the digest of that.
    for key in {"errors", "digest"} & saved.keys() if kind == "evaluation" else ():
        document[key] = saved[key]
    assert saved == document
    for suffix in (".md", ".csv", ".txt"):
        result.save(tmp_path / f"result{suffix}")
        assert (tmp_path / f"result{suffix}").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_a_result_has_the_rows_of_its_csv(kind: str, results: Mapping[str, Result], tmp_path: Path) -> None:
    result = results[kind]
    frame = result.to_frame()
    assert frame.equals(jaccard_eval.to_frame(result))
    result.save(tmp_path / "result.csv")
    header = (tmp_path / "result.csv").read_text().partition("\n")[0].split(",")
    # Tables have classes alone; what is measured over all of them fills columns of its own in the file.
    assert list(frame.columns) == [name for name in header if name in frame.columns]
    if kind not in ("evaluation", "panoptic", "pixels"):
        assert list(frame.columns) == header


CALLS: Mapping[str, tuple[Callable[[], Result], tuple[Any, ...]]] = {
    "evaluate": (lambda: jaccard_eval.evaluate(GT, BETTER), ("evaluate", GT, BETTER)),
    "evaluate at a score, resampled": (
        lambda: jaccard_eval.evaluate(
            GT, BETTER, score="best-f1", bootstrap=20, slices=[jaccard_eval.Slice(name="a", patterns=("*1*",))]
        ),
        ("evaluate", GT, BETTER, "--score", "best-f1", "--bootstrap", "20", "--slice", "a=*1*"),
    ),
    "compare": (
        lambda: jaccard_eval.compare(GT, BETTER, WORSE, options=jaccard_eval.CompareOptions(bootstrap=20)),
        ("compare", GT, BETTER, WORSE, "--bootstrap", "20"),
    ),
    "explain": (lambda: jaccard_eval.explain(GT, BETTER), ("explain", GT, BETTER)),
    "inspect": (lambda: jaccard_eval.inspect(GT, BETTER), ("inspect", GT, BETTER)),
    "sensitivity": (lambda: jaccard_eval.sensitivity(GT, BETTER), ("sensitivity", GT, BETTER)),
}
SUFFIXES = (".json", ".csv", ".md", ".txt", ".xml", ".npz", ".svg", ".png")
OF_EVALUATIONS = ("images.csv", "confusion.csv", "curves.csv", "thresholds.yaml", "badge.json", "metrics.txt")


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_what_is_saved_has_the_bytes_of_the_command_line(name: str, tmp_path: Path) -> None:
    call, argv = CALLS[name]
    result = call()
    files = [f"result{suffix}" for suffix in SUFFIXES]
    files += OF_EVALUATIONS if argv[0] == "evaluate" else ()
    written = 0
    for file in files:
        theirs, own = tmp_path / "theirs" / file, tmp_path / "own" / file
        for path in (theirs, own):
            path.parent.mkdir(exist_ok=True)
        done = run_here(*argv, "-o", theirs)
        if done.returncode == 2:  # there is no such report of this kind
            with pytest.raises(UsageError):
                result.save(own)
            assert not own.exists()
            continue
        if done.returncode == 4 and file.endswith((".svg", ".png")):
            continue  # matplotlib is not installed
        assert done.returncode == 0, done.stderr
        result.save(own)
        assert own.read_bytes() == theirs.read_bytes(), file
        written += 1
    assert written >= 4


def test_a_saved_run_gives_the_same_numbers_again(tmp_path: Path) -> None:
    result = jaccard_eval.evaluate(GT, BETTER)
    result.save(tmp_path / "run.npz")
    compared = jaccard_eval.compare(None, tmp_path / "run.npz", tmp_path / "run.npz")
    assert [delta.delta for delta in compared.others[0].summary if delta.metric == "AP"] == [0.0]
    assert compared.others[0].summary[0].value == result["AP"]


def test_nothing_is_saved_over_an_input(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    before = gt.read_bytes(), pred.read_bytes()
    result = jaccard_eval.evaluate(gt, pred)
    for path in (gt, pred):
        with pytest.raises(UsageError, match=r"would overwrite the input .*; choose another path"):
            result.save(path)
    assert (gt.read_bytes(), pred.read_bytes()) == before


def test_a_cell_shows_the_classes_of_an_evaluation_and_breaks_its_signature() -> None:
    result = jaccard_eval.evaluate(GT, WORSE)
    html = result._repr_html_()
    assert all(f">{row.name}</td>" in html for row in result.per_class)
    assert f'<code style="overflow-wrap: anywhere; white-space: normal">{result.signature.split("|")[0]}' in html


def test_a_suffix_that_no_report_has_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"got '\.docx', choose from .*\.json"):
        jaccard_eval.evaluate(GT, BETTER).save(tmp_path / "result.docx")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("kind", ["evaluation", "sensitivity"])
def test_results_with_charts_draw_a_figure_of_matplotlib(kind: str) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    call = {
        "evaluation": lambda: jaccard_eval.evaluate(GT, BETTER),
        "sensitivity": lambda: jaccard_eval.sensitivity(GT, BETTER),
    }[kind]
    figure = call().plot()
    assert isinstance(figure, Figure)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles
    if kind == "evaluation":
        assert any(title.startswith("Confusion") for title in titles)
        assert "Precision, recall and F1 by confidence threshold" in titles


def test_to_plot_a_result_without_charts_is_an_error(tmp_path: Path) -> None:
    result = jaccard_eval.evaluate(GT, BETTER)
    result.save(tmp_path / "result.json")
    with pytest.raises(UsageError, match="verify has no charts to draw"):
        jaccard_eval.verify(tmp_path / "result.json", GT, BETTER).plot()


def _bars(figure: Any) -> dict[str, dict[str, float]]:
    """Return the length of each bar by its name, by the title of the chart."""
    return {
        axes.get_title(): {
            label.get_text(): bar.get_width() for label, bar in zip(axes.get_yticklabels(), axes.patches, strict=True)
        }
        for axes in figure.axes
        if axes.patches
    }


@pytest.mark.needs("matplotlib")
def test_comparisons_explanations_inspections_and_gates_draw_what_they_list() -> None:
    result = jaccard_eval.evaluate(GT, WORSE)
    comparison = jaccard_eval.compare(GT, WORSE, BETTER, bootstrap=0)
    bars = _bars(comparison.plot())
    # 0.6616 - 0.3463, the values that README shows.
    assert bars["Metrics, B - A"]["AP"] == pytest.approx(0.3153, abs=1e-4)
    assert list(bars["Classes, AP of B - A"]) == [row.class_name for row in comparison.others[0].movers()]
    assert "Mean of classes: precision-recall at IoU 0.50" in [axes.get_title() for axes in comparison.plot().axes]

    explanation = jaccard_eval.explain(result, metric="AP50", boxes=3)
    gains = _bars(explanation.plot())["Boxes that cost most"]
    assert [*gains.values()] == [fix.gain for fix in explanation.fixes]

    bars = _bars(jaccard_eval.inspect(GT, WORSE).plot())
    # person, car, bicycle and dog have 16, 11, 6 and 6 objects, crowds included.
    assert [*bars["Boxes by class, ground truth"].values()][:4] == [16, 11, 6, 6]

    margins = _bars(jaccard_eval.gate(result, ["AP50>=0.5", "AP50>=0.75"]).plot())
    (of_gates,) = margins.values()
    # 0.6915 is 0.1915 above the one limit and 0.0585 below the other.
    assert [*of_gates.values()] == pytest.approx([0.1915, -0.0585], abs=1e-4)
    assert [*of_gates] == ["AP50 min 0.5 (pass)", "AP50 min 0.75 (fail)"]


def test_a_table_of_curves_has_a_row_per_value() -> None:
    gt = BoxTable.from_arrays([0, 0], ["dog", "cat"], [[0, 0, 10, 10], [20, 20, 40, 40]])
    pred = BoxTable.from_arrays([0], ["dog"], [[0, 0, 10, 10]], score=[0.9])
    result = jaccard_eval.evaluate(gt, pred)
    curves, frame = result.curves, jaccard_eval.to_frame(result.curves)
    assert list(frame.columns) == ["class", "area", "max_dets", "iou", "recall", "precision", "score"]
    assert len(frame) == curves.precision.size == 10 * 101 * 2 * 4 * 3
    # The dog is found at every threshold by the only detection; the cat by none.
    row = frame[(frame["iou"] == 0.5) & (frame["area"] == "all") & (frame["max_dets"] == 100)]
    assert row[row["class"] == "dog"]["precision"].tolist() == pytest.approx([1.0] * 101)
    assert row[row["class"] == "dog"]["score"].tolist() == [0.9] * 101
    assert row[row["class"] == "cat"]["precision"].tolist() == [0.0] * 101
    # AP of each class and threshold is the mean of its rows.
    means = row.groupby("class")["precision"].mean()
    assert means.to_dict() == pytest.approx({name: result[f"AP50[class={name}]"] for name in ("dog", "cat")})
    assert math.isnan(frame[frame["area"] == "large"]["precision"].iloc[0])
    for t, r, k, a, m in ((0, 0, 0, 0, 0), (9, 100, 1, 1, 2), (4, 50, 0, 3, 1)):
        at = (((k * 4 + a) * 3 + m) * 10 + t) * 101 + r
        assert frame["precision"][at] == curves.precision[t, r, k, a, m] or math.isnan(frame["precision"][at])
        assert frame["class"][at] == ("cat", "dog")[k] or frame["class"][at] == ("dog", "cat")[k]


def test_a_table_of_errors_has_a_row_per_type() -> None:
    result = jaccard_eval.evaluate(GT, BETTER, errors=True)
    frame = jaccard_eval.to_frame(result.errors)
    assert list(frame.columns) == ["type", "count", "gain"]
    assert frame["type"].tolist()[:2] == [kind.name for kind in result.errors.types[:2]]
    assert frame["count"].sum() == sum(
        kind.count for kind in (*result.errors.types, result.errors.false_positives, result.errors.false_negatives)
    )


def test_the_numbers_of_an_operating_point_need_no_score() -> None:
    gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [20, 20, 40, 40]])
    pred = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [50, 50, 60, 60]], score=[0.9, 0.2])
    at = jaccard_eval.evaluate(gt, pred, score=0.5)
    # One of one detection is right, one of two objects is found: F1 = 2 / 3.
    assert (at["precision"], at["recall"], at["F1"]) == (1.0, 0.5, pytest.approx(2 / 3))
    assert at["f1"] == at["F1"] == at["F1[iou=0.5,score=0.5]"]
    assert (at["TP"], at["FP"], at["FN"]) == (1.0, 0.0, 1.0)
    with pytest.raises(UsageError, match="precision"):
        jaccard_eval.evaluate(gt, pred)["precision"]


def test_the_answer_of_gates_is_a_sequence_that_passed_or_not() -> None:
    result = jaccard_eval.evaluate(overlap_gt(), overlap_pred())
    answer = jaccard_eval.gate(result, ["AP50>=0.999", "AP<=0.1"])
    assert [str(verdict.status) for verdict in answer] == ["fail" if result["AP50"] < 0.999 else "pass", "fail"]
    assert (len(answer), answer[0], answer[-1:]) == (2, answer.gates[0], answer.gates[1:])
    assert not answer.passed
    assert all(verdict.failed for verdict in answer.failed)
    assert "FAILED" in repr(answer)
    passing = jaccard_eval.gate(result, ["AP50>=0.001"])
    assert passing.passed
    assert passing.failed == ()
    assert "<GateResult passed: 1 pass>" in repr(passing)


@pytest.mark.parametrize("metric", ["AP", "AP50[class=car]", "F1[iou=0.5,score=0.4]", "AR"])
@pytest.mark.parametrize(
    "options",
    [{}, {"score_min": 0.3, "classes": ["car", "person"]}, {"protocol": "voc2012", "nms": 0.6}],
    ids=["plain", "chosen", "voc"],
)
def test_a_result_is_explained_as_its_inputs_are(metric: str, options: dict[str, Any]) -> None:
    result = jaccard_eval.evaluate(GT, WORSE, score=0.5, bootstrap=5, **options)
    if metric == "AR" and options.get("protocol"):
        return
    again, expected = (
        explanation.to_dict()
        for explanation in (
            jaccard_eval.explain(result, metric=metric, against="voc2007"),
            jaccard_eval.explain(GT, WORSE, metric, against="voc2007", **options),
        )
    )
    for document in (again, expected):  # an evaluation finds more than reading does
        del document["warnings"], document["digest"]
    assert again == expected


def test_a_result_is_explained_by_its_own_rules_alone() -> None:
    result = jaccard_eval.evaluate(GT, WORSE)
    with pytest.raises(UsageError, match="score_min: the result has rules"):
        jaccard_eval.explain(result, score_min=0.5)
    with pytest.raises(UsageError, match="pred: the result has rules"):
        jaccard_eval.explain(result, WORSE)
    with pytest.raises(UsageError, match="explain needs ground truth and predictions"):
        jaccard_eval.explain(GT)


def test_a_page_has_the_bytes_of_the_command_line_but_no_command(tmp_path: Path) -> None:
    done = run_here("evaluate", GT, BETTER, "-o", tmp_path / "theirs.html")
    assert done.returncode == 0, done.stderr
    jaccard_eval.evaluate(GT, BETTER).save(tmp_path / "own.html")
    theirs = (tmp_path / "theirs.html").read_text(encoding="utf-8")
    command = re.compile(r"<div><dt>command</dt>.*?</div>\n", re.DOTALL)
    assert command.search(theirs)
    assert (tmp_path / "own.html").read_text(encoding="utf-8") == command.sub("", theirs)


def test_a_folder_of_pages_is_saved_by_a_slash_at_the_end(tmp_path: Path) -> None:
    done = run_here("evaluate", GT, BETTER, "-o", f"{tmp_path}/theirs/")
    assert done.returncode == 0, done.stderr
    jaccard_eval.evaluate(GT, BETTER).save(f"{tmp_path}/own/")
    files = [sorted(path.name for path in (tmp_path / name).rglob("*")) for name in ("theirs", "own")]
    assert files[0] == files[1] != []


def test_the_differences_of_a_comparison_are_a_table() -> None:
    other = jaccard_eval.compare(GT, BETTER, WORSE, options=jaccard_eval.CompareOptions(bootstrap=20)).others[0]
    frame = jaccard_eval.to_frame(other)
    assert list(frame.columns) == ["metric", "class", "baseline", "value", "delta", "low", "high", "p", "gt"]
    assert len(frame) == len(other.deltas)
    first = frame.iloc[0]
    assert (first["metric"], first["class"]) == ("AP", "all")
    assert first["value"] == jaccard_eval.evaluate(GT, WORSE)["AP"]
    assert first["low"] <= first["delta"] <= first["high"] < 0


def test_a_folder_of_images_that_is_not_there_is_refused_for_results_as_for_files(tmp_path: Path) -> None:
    worse, better = jaccard_eval.evaluate(GT, WORSE), jaccard_eval.evaluate(GT, BETTER)
    with pytest.raises(jaccard_eval.DataError, match="nowhere: no such file or directory"):
        jaccard_eval.compare(worse, better, images=tmp_path / "nowhere")
    worse.save(tmp_path / "run.npz")
    done = run_here("report", tmp_path / "run.npz", "--images", tmp_path / "nowhere", "-q")
    assert done.returncode == 3
    assert "[file-missing]" in done.stderr
