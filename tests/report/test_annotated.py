"""A folder of annotated images: boxes where they belong, safe names, whole or untouched."""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from pictures import det, evaluate, gt
from PIL import Image

from jaccard_eval import BoxTable
from jaccard_eval import evaluate as evaluate_files
from jaccard_eval.atomic import FolderPath
from jaccard_eval.cli import run
from jaccard_eval.errors import ExitCode, MachineError, UsageError
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.annotated import CANVAS, STYLES, render
from jaccard_eval.report.write import LISTING, Output, plan_outputs, write_outputs

SAMPLE = Path(__file__).parents[2] / "sample_data"
PAIR = [str(SAMPLE / "yolo" / "data.yaml"), str(SAMPLE / "yolo" / "worse")]


def drawn(result: object) -> list[tuple[str, Image.Image]]:
    files = render(result, ReportOptions())  # type: ignore[arg-type]
    return [(name, Image.open(io.BytesIO(data))) for name, data in files.items()]


def edge_colours(image: Image.Image, box: tuple[float, float, float, float], scale: float) -> set[tuple[int, ...]]:
    """Colours along the left edge of a box, away from its corners, where labels are."""
    left, top, _, height = box
    x = round(left * scale)
    rows = np.linspace((top + height * 0.4) * scale, (top + height * 0.6) * scale, 40)
    return {tuple(image.getpixel((x, round(y)))) for y in rows}  # type: ignore[arg-type]


def test_boxes_are_drawn_where_they_are_in_the_colour_of_what_they_are() -> None:
    truth = [gt("dog 100 100 200 200"), gt("dog 500 500 100 300")]
    [(name, image)] = drawn(
        evaluate(truth, [det("dog 100 100 200 190", 0.9), det("cat 700 100 80 200", 0.8)], score=0.5)
    )
    assert name == "01-a.png"
    # Nobody knows the size: it holds all boxes, 780 x 800, and is enlarged by two.
    assert image.size[0] == 1560
    assert STYLES["found"][0] in edge_colours(image, (100, 100, 200, 190), 2)
    assert STYLES["missed"][0] in edge_colours(image, (500, 500, 100, 300), 2)
    assert STYLES["false"][0] in edge_colours(image, (700, 100, 80, 200), 2)
    # An object that is found is not drawn a second time; next to boxes there is plain canvas.
    assert edge_colours(image, (400, 100, 10, 100), 2) == {CANVAS}


def test_false_positives_and_misses_are_dashed_and_found_boxes_solid() -> None:
    truth = [gt("dog 100 100 200 200"), gt("dog 500 500 100 300")]
    [(_, image)] = drawn(evaluate(truth, [det("dog 100 100 200 190", 0.9), det("cat 700 100 80 200", 0.8)], score=0.5))
    shares = {}
    for state, box in (
        ("found", (100, 100, 200, 190)),
        ("missed", (500, 500, 100, 300)),
        ("false", (700, 100, 80, 200)),
    ):
        left, top, _, height = box
        column = [
            image.getpixel((left * 2, y))
            for y in range(round(2 * (top + height * 0.3)), round(2 * (top + height * 0.9)))
        ]
        shares[state] = column.count(STYLES[state][0]) / len(column)  # type: ignore[index]
    assert shares["found"] == 1
    assert 0.5 < shares["missed"] < 0.7  # six of ten
    assert 0.25 < shares["false"] < 0.45  # one of three


def test_the_image_itself_is_shown_at_full_size_below_its_boxes() -> None:
    result = evaluate_files(*PAIR, score=0.5, worst_images=3)
    for row, (_, image) in zip(result.worst_images.rows(3), drawn(result), strict=True):
        with Image.open(SAMPLE / "yolo" / "images" / "val" / str(row["image"]).split("/")[-1]) as file:
            original = np.asarray(file.convert("RGB"))
        shown = np.asarray(
            image.crop((0, 0, original.shape[1] * 2, original.shape[0] * 2)).resize(original.shape[1::-1])
        )
        alike = (np.abs(shown.astype(int) - original).max(axis=2) < 60).mean()
        assert alike > 0.8


def test_the_images_are_the_worst_in_their_order(tmp_path: Path) -> None:
    target = tmp_path / "worst.png"
    assert run.run([*PAIR, "-q", "--worst-images", "3", "-o", f"{target}/", "-o", str(tmp_path / "images.csv")]) == 0
    names = [line.split(",")[0] for line in (tmp_path / "images.csv").read_text().splitlines()[1:4]]
    assert sorted(path.name for path in target.glob("*.png")) == [
        f"{rank:02}-{Path(name).stem}.png" for rank, name in enumerate(names, start=1)
    ]


def test_explain_draws_the_images_of_its_boxes_of_a_saved_result_too(tmp_path: Path) -> None:
    coco = [str(SAMPLE / "coco" / "gt.json"), str(SAMPLE / "coco" / "worse.json")]
    images = str(SAMPLE / "yolo" / "images" / "val")
    assert run.run(["explain", *coco, "AP50", "--images", images, "-q", "-o", f"{tmp_path}/one/"]) == 0
    assert run.run(["evaluate", *coco, "-q", "-o", str(tmp_path / "result.json")]) == 0
    saved = str(tmp_path / "result.json")
    assert run.run(["explain", saved, "AP50", "--images", images, "-q", "-o", f"{tmp_path}/two/"]) == 0
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).glob("*.png")} for name in ("one", "two"))
    assert one == two
    assert len(one) > 1
    assert run.run(["explain", *coco, "AP50", "-q", "-o", f"{tmp_path}/plain/"]) == 0
    plain = {path.name: path.read_bytes() for path in (tmp_path / "plain").glob("*.png")}
    assert one.keys() == plain.keys()
    assert all(one[name] != plain[name] for name in one)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "a/../../b.jpg",
        "CON",
        "nul.png",
        "x" * 400,
        "a\0b",
        "..",
        ".hidden",
        "",
        "日本.jpg",
        "a:b*?.jpg",
    ],
)
def test_names_of_files_are_harmless(name: str, tmp_path: Path) -> None:
    boxes = ([name, name], [0, 0], [[0, 0, 9, 9], [20, 20, 30, 30]])
    result = evaluate_files(BoxTable.from_arrays(*boxes), BoxTable.from_arrays(*boxes, score=[0.9, 0.8]))
    [made] = render(result, ReportOptions())
    assert made.startswith("01-")
    assert made.endswith(".png")
    assert len(made) < 100
    assert all(letter.isascii() and (letter.isalnum() or letter in "-_.") for letter in made)
    assert ".." not in made
    write_outputs([(output, render(result, ReportOptions())) for output in plan(tmp_path / "out")])
    assert {path.name for path in (tmp_path / "out").iterdir()} == {made, LISTING}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_equal_names_do_not_collide() -> None:
    truth = [gt("dog 0 0 9 9", "a/x.jpg"), gt("dog 0 0 9 9", "b/x.jpg"), gt("dog 0 0 9 9", "b/X.png")]
    files = render(evaluate(truth, [], score=0.5), ReportOptions())
    assert list(files) == ["01-x.png", "02-X.png", "03-x.png"]


def test_labels_of_other_alphabets_and_without_end_are_drawn() -> None:
    names = ["日本語", "x" * 500, "{{7*7}}", "a\x1b[31m"]
    labels = list(range(4))
    boxes = [[10 * i, 10 * i, 10 * i + 50, 10 * i + 50] for i in labels]
    truth = BoxTable.from_arrays([0] * 4, [names[i] for i in labels], boxes)
    [(_, image)] = drawn(evaluate_files(truth, BoxTable.from_arrays([0], [names[0]], boxes[:1], score=[0.5])))
    assert image.size[0] >= 80


def test_huge_and_far_boxes_are_cut_and_a_huge_canvas_is_made_smaller() -> None:
    truth = BoxTable.from_arrays([0, 0], [0, 0], [[-1e6, -1e6, 9e6, 8e6], [0, 0, 10, 10]])
    [(_, image)] = drawn(evaluate_files(truth, BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.5])))
    assert max(image.size) <= 4400


def test_the_same_bytes_twice() -> None:
    one, two = (dict(render(evaluate_files(*PAIR, worst_images=2), ReportOptions())) for _ in range(2))
    assert one == two
    assert all(b"tEXtSoftware\0jaccard-eval" in data for data in one.values())


def plan(path: Path) -> list[Output]:
    return plan_outputs([FolderPath(path)], folders=True)


def test_a_folder_of_an_earlier_run_is_replaced_and_no_other(tmp_path: Path) -> None:
    target = tmp_path / "worst.png"
    assert run.run([*PAIR, "-q", "--worst-images", "3", "-o", f"{target}/"]) == 0
    assert run.run([*PAIR, "-q", "--worst-images", "1", "-o", str(target)]) == 0
    [image] = target.glob("*.png")
    assert (target / LISTING).read_text() == f"{image.name}\n"
    (target / "notes.txt").write_text("mine")
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    assert run.run([*PAIR, "-q", "--worst-images", "2", "-o", f"{target}/"]) == ExitCode.USAGE
    assert {path.name: path.read_bytes() for path in target.iterdir()} == before
    with pytest.raises(UsageError, match=r"holds 1 file that another program wrote: 'notes.txt'; choose a new folder"):
        plan(target)


class Failing(Mapping[str, bytes]):
    """Files of which the second cannot be made."""

    def __getitem__(self, name: str) -> bytes:
        if name == "2.png":
            raise MachineError("no more")
        return b"new"

    def __iter__(self) -> Iterator[str]:
        return iter(["1.png", "2.png"])

    def __len__(self) -> int:
        return 2


def test_a_failure_in_between_leaves_what_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "worst.png"
    folder.mkdir()
    (folder / "old.png").write_bytes(b"old")
    (folder / LISTING).write_text("old.png\n")
    (tmp_path / "a.json").write_text("old")
    outputs = plan_outputs([tmp_path / "a.json", FolderPath(folder)], folders=True)
    with pytest.raises(MachineError, match="no more"):
        write_outputs(list(zip(outputs, ["new", Failing()], strict=True)))
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "a.json",
        "worst.png",
        f"worst.png/{LISTING}",
        "worst.png/old.png",
    ]
    assert (tmp_path / "a.json").read_text() == "old"


@pytest.mark.parametrize("target", ["{images}/", "{images}/worst.png/", "{root}/"])
def test_nothing_is_written_where_images_are_read(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    (data / "images").mkdir(parents=True)
    (data / "labels").mkdir()
    (tmp_path / "pred").mkdir()
    Image.new("RGB", (100, 100)).save(data / "images" / "a.png")
    (data / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "pred" / "a.txt").write_text("0 0.5 0.5 0.2 0.2 0.9\n")
    place = target.format(images=data / "images", root=data)
    before = sorted(tmp_path.rglob("*"))
    args = ["evaluate", str(data / "labels"), str(tmp_path / "pred"), "--images", str(data / "images")]
    code = run.run([*args, "--worst-images", "1", "-o", place])
    message = capsys.readouterr().err
    assert code == ExitCode.USAGE, message
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_in_the_place_of_the_folder_and_a_folder_of_no_images_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    assert run.run([*PAIR, "-q", "-o", f"{tmp_path}/file/"]) == ExitCode.ENVIRONMENT
    assert "it is not a folder" in capsys.readouterr().err
    assert run.run(["inspect", *PAIR, "-q", "-o", str(tmp_path)]) == ExitCode.ENVIRONMENT
    assert "it is a directory" in capsys.readouterr().err
    assert run.run(["inspect", *PAIR, "-q", "-o", f"{tmp_path}/new/"]) == ExitCode.USAGE
    assert "is a folder; name a file" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_configured_folder_keeps_its_slash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [str(Path(side).resolve()) for side in PAIR]
    (tmp_path / "jaccard-eval.toml").write_text('[evaluate]\noutput = ["worst.png/"]\n')
    monkeypatch.chdir(tmp_path)
    assert run.run([*pair, "-q", "--worst-images", "2"]) == 0
    assert len(list((tmp_path / "worst.png").glob("*.png"))) == 2
