"""A message that names an option is followed here: what it asks for has to work."""

import json
import re
import shlex
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_here
from PIL import Image

SAMPLE = Path(__file__).parents[2] / "sample_data/coco"
SIDES = (SAMPLE / "gt.json", SAMPLE / "better.json")
SEGMENTS = SAMPLE.parent / "panoptic"
OLD = ("--against", str(SEGMENTS / "better.json"))
WORSE = (SEGMENTS / "gt.json", SEGMENTS / "worse.json")


def repeated(source: Path, folder: Path, times: int) -> Path:
    """Write a set of the sample with each image several times: an interval needs 20."""
    document = json.loads(source.read_text())
    first = max(one["id"] for one in json.loads((source.parent / "gt.json").read_text())["images"])
    lists = {"": document} if isinstance(document, list) else document
    for name in {"", "images", "annotations"} & lists.keys():
        copies = []
        for turn in range(times):
            for n, one in enumerate(lists[name]):
                key = {"image_id": one["image_id"] + turn * first} if "image_id" in one else {}
                number = (
                    {"id": one["id"] + turn * first} if name == "images" else {"id": 1 + turn * len(lists[name]) + n}
                )
                file = {"file_name": f"{turn}_{one['file_name']}"} if "file_name" in one else {}
                copies.append(one | number | key | file)
        lists[name] = copies
    target = folder / source.name
    target.write_text(json.dumps(lists.get("", document) if "" in lists else lists))
    maps = source.with_suffix("")
    if maps.is_dir():
        (folder / source.stem).mkdir()
        for turn, path in product(range(times), maps.iterdir()):
            shutil.copy(path, folder / source.stem / f"{turn}_{path.name}")
    return target


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of the sample with enough images for intervals, by the files that they are of."""
    folder = tmp_path_factory.mktemp("large")
    found = {}
    for times, names in ((2, SIDES), (6, (*WORSE, SEGMENTS / "better.json"))):
        (folder / str(times)).mkdir()
        found |= {str(path): str(repeated(path, folder / str(times), times)) for path in names}
    maps = SEGMENTS / "better"
    return found | {str(maps): str(folder / "6" / maps.name)}


def of_large(large: dict[str, str], *words: Any) -> list[str]:
    return [large.get(str(word), str(word)) for word in words]


@pytest.mark.parametrize(
    ("given", "named", "followed"),
    [
        (("--fail-under", "AP83=0"), "Evaluate with --iou 0.83.", ("--fail-under", "AP83=0", "--iou", "0.83")),
        (
            ("--fail-drop", "AP=0.1", "--baseline", "none.json"),
            "Create it with --update-baseline",
            ("--fail-drop", "AP=0.1", "--baseline", "none.json", "--update-baseline"),
        ),
        (
            ("--fail-drop", "AP=0.1", "--baseline", "none.json"),
            "skip the rules that need it with --allow-missing-baseline",
            ("--fail-drop", "AP=0.1", "--baseline", "none.json", "--allow-missing-baseline"),
        ),
        (("-o", "thresholds.json", "--no-errors"), "without --no-errors", ("-o", "thresholds.json")),
        (
            ("--update-baseline",),
            "--update-baseline needs --baseline FILE.json",
            ("--baseline", "b.json", "--update-baseline"),
        ),
        (
            ("--metric", "ms=12", "--fail-under", "AP=0"),
            "add --fail-over external.ms=LIMIT",
            ("--metric", "ms=12", "--fail-over", "external.ms=15"),
        ),
        (("--confidence", "0.9"), "--confidence needs --bootstrap N", ("--confidence", "0.9", "--bootstrap", "20")),
    ],
)
def test_what_evaluate_asks_for_works(
    tmp_path: Path, given: tuple[str, ...], named: str, followed: tuple[str, ...]
) -> None:
    refused = run_here("evaluate", *SIDES, *given, cwd=tmp_path)
    assert refused.returncode == 2
    assert named in " ".join(refused.stderr.split())
    done = run_here("evaluate", *SIDES, *followed, cwd=tmp_path)
    assert (done.returncode, "error" in done.stderr) == (0, False)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("given", [("{it}",), ("{it}", "{gt}"), ("{gt}", "{it}"), ("inspect", "{it}")])
def test_a_saved_result_in_the_place_of_an_input_is_shown_by_the_command_that_is_named(
    tmp_path: Path, given: tuple[str, ...], suffix: str
) -> None:
    saved = tmp_path / f"our run{suffix}"
    assert run_here("evaluate", *SIDES, "-o", saved).returncode == 0
    refused = run_here(*(word.format(it=saved, gt=SIDES[0]) for word in given))
    assert refused.returncode == 3
    assert refused.stderr.startswith(f"error[wrong-content]: {saved}: is a saved result of jaccard-eval")
    named = re.search(r"'jaccard-eval (report '.*')', or", refused.stderr)
    assert named
    shown = run_here(*shlex.split(named[1]), "-q")
    assert (shown.returncode, shown.stdout) == (0, "AP 0.6616  AP50 0.8826  AP75 0.8168\n")


def test_results_of_segments_and_label_maps_are_known_in_their_commands(tmp_path: Path) -> None:
    sides, saved = (SEGMENTS / "gt.json", SEGMENTS / "worse.json"), tmp_path / "result.json"
    assert run_here("panoptic", *sides, "-o", saved).returncode == 0
    for given in ((saved,), (saved, sides[1]), (sides[0], saved)):
        refused = run_here("panoptic", *given)
        assert refused.returncode == 3
        assert f"{saved}: is a saved result of jaccard-eval, not ground truth or predictions. Show it" in refused.stderr
    label_map = tmp_path / "map.png"
    Image.new("L", (4, 3), 1).save(label_map)
    assert run_here("pixels", label_map, label_map, "-o", saved).returncode == 0
    refused = run_here("pixels", saved, label_map)
    assert f"{saved}: is a saved result of jaccard-eval" in refused.stderr


def test_files_of_boxes_lead_from_panoptic_to_evaluate() -> None:
    refused = run_here("panoptic", *SIDES)
    assert refused.returncode == 3
    assert refused.stderr.count("These are boxes: evaluate them with 'jaccard-eval evaluate GT PRED'.") == 2


def test_what_convert_asks_for_works(tmp_path: Path) -> None:
    for given, named, followed in (
        ((SIDES[0], "out"), "Name one with --to", (SIDES[0], "out.xyz", "--to", "coco")),
        (
            (SIDES[1], "a.json", "--gt", SIDES[0], "--role", "gt"),
            "remove --role gt",
            (SIDES[1], "a.json", "--gt", SIDES[0]),
        ),
    ):
        refused = run_here("convert", *given, cwd=tmp_path)
        assert refused.returncode == 2
        assert named in " ".join(refused.stderr.split())
        assert run_here("convert", *followed, cwd=tmp_path).returncode == 0


def test_a_result_without_the_metric_of_a_rule_is_evaluated_again_with_it(tmp_path: Path) -> None:
    assert run_here("evaluate", *SIDES, "-o", "result.json", "-o", "run.npz", cwd=tmp_path).returncode == 0
    refused = run_here("gate", "result.json", "--fail-under", "AP85=0", cwd=tmp_path)
    assert refused.returncode == 2
    assert "result.json has no AP85. Re-run evaluate with this rule, or use the saved run (.npz)." in refused.stderr
    assert run_here("gate", "run.npz", "--fail-under", "AP85=0", cwd=tmp_path).returncode == 0
    assert run_here("evaluate", *SIDES, "-o", "again.json", "--fail-under", "AP85=0", cwd=tmp_path).returncode == 0
    assert run_here("gate", "again.json", "--fail-under", "AP85=0", cwd=tmp_path).returncode == 0


def test_a_significance_gets_the_runs_that_it_asks_for(tmp_path: Path, large: dict[str, str]) -> None:
    sides = of_large(large, *SIDES)
    rule = ("--fail-significant-drop", "AP=0.9", "--baseline", "main.json")
    assert run_here("evaluate", *sides, "-o", "main.json", cwd=tmp_path).returncode == 0
    refused = run_here("evaluate", *sides, *rule, cwd=tmp_path)
    assert refused.returncode == 2
    assert "Write both: 'jaccard-eval evaluate GT PRED -o main.json -o main.npz'" in refused.stderr
    assert run_here("evaluate", *sides, "-o", "main.json", "-o", "main.npz", cwd=tmp_path).returncode == 0
    done = run_here("evaluate", *sides, *rule, "-o", "new.json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads((tmp_path / "new.json").read_text())["gates"][0]["status"] == "pass"


SIGNIFICANT, DROP = ("--fail-significant-drop", "PQ=0.5"), ("--fail-drop", "PQ=0.5")


@pytest.mark.parametrize(
    ("given", "named", "followed"),
    [
        ((*SIGNIFICANT, "--baseline", "base.json"), "panoptic GT PRED --against OLD_PRED", (*SIGNIFICANT, *OLD)),
        (SIGNIFICANT, "needs a baseline. Add --against PRED", (*SIGNIFICANT, *OLD)),
        (("--fail-inferior", "PQ=0.5"), "Add --against PRED", ("--fail-inferior", "PQ=0.5", *OLD)),
        (DROP, "Add --against PRED, or --baseline FILE", (*DROP, *OLD)),
        (DROP, "Add --against PRED, or --baseline FILE", (*DROP, "--baseline", "base.json")),
        (
            (*DROP, "--baseline", "none.json"),
            "Create it with --update-baseline",
            (*DROP, "--baseline", "none.json", "--update-baseline"),
        ),
        (
            (*SIGNIFICANT, "--baseline", "none.json"),
            "Create it with --update-baseline",
            (*SIGNIFICANT, *OLD, "--baseline", "none.json", "--update-baseline"),
        ),
        (
            (*DROP, "--baseline", "base.json", "--iou-type", "boundary"),
            "Update the baseline with --update-baseline.",
            (*DROP, "--baseline", "base.json", "--iou-type", "boundary", "--update-baseline"),
        ),
        (("--fail-under", "TP=0"), "TP needs a class, as in TP[class=NAME]", ("--fail-under", "TP[class=car]=0")),
        (("-o", "run.npz"), "cannot be saved as .npz; use .json", ("-o", "run.json")),
        (("--confidence", "0.9"), "--confidence needs --bootstrap N", ("--confidence", "0.9", "--bootstrap", "20")),
        (
            ("--against-masks", str(SEGMENTS / "better")),
            "against_masks needs against",
            (*OLD, "--against-masks", str(SEGMENTS / "better")),
        ),
        (("--dilation-ratio", "0.01"), "Pass --iou-type boundary", ("--dilation-ratio", "0.01", "--iou-type=boundary")),
    ],
)
def test_what_panoptic_asks_for_works(
    tmp_path: Path, large: dict[str, str], given: tuple[str, ...], named: str, followed: tuple[str, ...]
) -> None:
    assert run_here("panoptic", *of_large(large, *WORSE), "-o", "base.json", cwd=tmp_path).returncode == 0
    refused = run_here("panoptic", *of_large(large, *WORSE, *given), cwd=tmp_path)
    assert refused.returncode == 2
    assert named in " ".join(refused.stderr.split())
    done = run_here("panoptic", *of_large(large, *WORSE, *followed), cwd=tmp_path)
    assert (done.returncode, "error" in done.stderr) == (0, False)


@pytest.mark.parametrize(
    "compared",
    [(*WORSE, SEGMENTS / "better.json"), ("r.json", "r.json"), ("drawn.json", "r.json"), ("against.json", "r.json")],
)
def test_a_comparison_of_segments_names_the_command_that_does_it(tmp_path: Path, compared: tuple[Any, ...]) -> None:
    for name, more in (("r", ()), ("drawn", ("--bootstrap", "5")), ("against", OLD)):
        assert run_here("panoptic", *WORSE, *more, "-o", f"{name}.json", cwd=tmp_path).returncode == 0
    refused = run_here("compare", *compared, cwd=tmp_path)
    assert refused.returncode == 3
    (words,) = re.findall(r"'jaccard-eval (panoptic GT PRED --against OTHER)'", " ".join(refused.stderr.split()))
    paths = {"GT": WORSE[0], "PRED": WORSE[1], "OTHER": OLD[1]}
    done = run_here(*(paths.get(word, word) for word in words.split()), cwd=tmp_path)
    assert (done.returncode, "Difference" in done.stdout) == (0, True)


def test_exchanged_sides_and_boxes_for_segments_are_one_error_that_names_what_works() -> None:
    refused = run_here("panoptic", *reversed(WORSE))
    assert (refused.returncode, len(refused.stderr.splitlines())) == (3, 1)
    assert "Pass the ground truth first, then the predictions" in refused.stderr
    assert run_here("panoptic", *WORSE).returncode == 0
    refused = run_here("panoptic", SIDES[0], WORSE[1])
    assert (refused.returncode, len(refused.stderr.splitlines())) == (3, 1)
    assert "'jaccard-eval evaluate GT PRED'" in refused.stderr
    assert run_here("evaluate", *SIDES).returncode == 0


def test_keys_of_metrics_of_segments_are_those_that_they_have(tmp_path: Path) -> None:
    refused = run_here("panoptic", *WORSE, "--fail-under", "PQ[clas=car]=0.1", cwd=tmp_path)
    assert "unknown key 'clas'. Choose from class. Did you mean 'class'?" in refused.stderr
    assert run_here("panoptic", *WORSE, "--fail-under", "PQ[class=car]=0.1", cwd=tmp_path).returncode == 0
    refused = run_here("panoptic", *WORSE, "--fail-under", "PQ_things[clas=car]=0.1", cwd=tmp_path)
    assert "unknown key 'clas'. PQ_things has none." in refused.stderr
    refused = run_here("panoptic", *WORSE, "--slice", "a=*1.jpg", "--fail-under", "PQ[slice=a]=0.1", cwd=tmp_path)
    (key, name) = re.findall(r"by a rule of a configuration: (slice) = '(a)'", " ".join(refused.stderr.split()))[0]
    rule = f"[[gates.rules]]\nmetric = 'PQ'\nmin = 0.1\n{key} = '{name}'\n[gates.slices]\n{name} = ['*1.jpg']\n"
    (tmp_path / "gates.toml").write_text(rule)
    done = run_here("panoptic", *WORSE, "--config", "gates.toml", cwd=tmp_path)
    assert (done.returncode, "passed 1 gate" in done.stdout) == (0, True)


def test_a_slice_that_a_saved_result_of_segments_lacks_is_in_the_next_one(tmp_path: Path) -> None:
    rule = '[[gates.rules]]\nmetric = "PQ"\nmin = 0.1\nslice = "first"\n[gates.slices]\nfirst = ["*1.jpg"]\n'
    (tmp_path / "gates.toml").write_text(rule)
    assert run_here("panoptic", *WORSE, "-o", "base.json", cwd=tmp_path).returncode == 0
    refused = run_here("gate", "base.json", "--config", "gates.toml", cwd=tmp_path)
    assert refused.returncode == 2
    assert "base.json has no slice 'first'. Re-run panoptic with this rule." in " ".join(refused.stderr.split())
    again = run_here("panoptic", *WORSE, "--config", "gates.toml", "-o", "base.json", cwd=tmp_path)
    assert again.returncode == run_here("gate", "base.json", "--config", "gates.toml", cwd=tmp_path).returncode == 0


def test_label_maps_name_no_file_that_they_cannot_write(tmp_path: Path) -> None:
    for side in ("gt", "pred"):
        (tmp_path / side).mkdir()
        Image.fromarray(np.eye(4, dtype=np.uint8)).save(tmp_path / side / "a.png")
    sides, rule = ("gt", "pred"), ("--baseline", "b.json", "--update-baseline")
    assert run_here("pixels", *sides, "--fail-drop", "mIoU=0.1", *rule, cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.json", "gt", "pred"]
    refused = run_here("gate", "b.json", "--fail-inferior", "mIoU=0.1", "--baseline", "b.json", cwd=tmp_path)
    assert refused.returncode == 2
    assert "Use max-drop without significance (--fail-drop)." in " ".join(refused.stderr.split())
    judged = run_here("gate", "b.json", "--fail-drop", "mIoU=0.1", "--baseline", "b.json", cwd=tmp_path)
    assert judged.returncode == 0


def test_a_saved_run_without_best_scores_names_the_evaluation_that_has_them(tmp_path: Path) -> None:
    assert run_here("evaluate", *SIDES, "-o", "run.npz", cwd=tmp_path).returncode == 0
    refused = run_here("report", "run.npz", "-o", "thresholds.yaml", cwd=tmp_path)
    assert refused.returncode == 2
    assert "Evaluate the inputs with '-o thresholds.yaml' (or .json), and without --no-errors" in refused.stderr
    assert run_here("evaluate", *SIDES, "-o", "thresholds.yaml", cwd=tmp_path).returncode == 0
