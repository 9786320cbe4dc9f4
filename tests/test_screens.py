"""The page of screens is current: each picture has the text that its command prints on a terminal of 80 columns.

Run as a script, this file writes docs/screens.md and the pictures in docs/screens again.
"""

import html
import io
import json
import re
import shlex
import shutil
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from command_line import COMMANDS, command, run_here
from PIL import Image
from pseudo_terminal import Terminal
from pseudo_terminal import screen as shown_on_screen
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
PAGE, PICTURES = ROOT / "docs" / "screens.md", ROOT / "docs" / "screens"
COLUMNS = 80
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
GT, BETTER, WORSE = (f"sample_data/coco/{name}.json" for name in ("gt", "better", "worse"))
MAP_CLASSES = "background,person,bicycle,car,cat,dog"


@dataclass(frozen=True)
class Screen:
    """A picture: its title, what it shows, and its command."""

    name: str
    title: str
    about: str
    command: str

    def __str__(self) -> str:
        return self.name


SCREENS = (
    Screen("evaluate", "Evaluate", "Average precision by class, and how the files were read.", f"{GT} {BETTER}"),
    Screen(
        "gate",
        "A gate that fails",
        "Rules for CI: the exit code is 1, and the last line names the first rule that failed.",
        "gate worse.json --fail-under AP50=0.6 --fail-drop AP=0.01 --baseline better.json",
    ),
    Screen(
        "compare",
        "Compare two models",
        "Differences with confidence intervals, and the objects that changed.",
        f"compare {GT} {WORSE} {BETTER}",
    ),
    Screen(
        "suite",
        "Many models on many sets",
        "Means, ranks and tests over the sets, and each pair; these sets are the sample in three formats.",
        "suite sample_data/suite.toml --no-cache",
    ),
    Screen(
        "explain", "Explain a metric", "The boxes that cost most, and what fixing them gives.", f"explain {GT} {WORSE}"
    ),
    Screen(
        "inspect", "Inspect the inputs", "What is in the files before anything is measured.", f"inspect {GT} {BETTER}"
    ),
    Screen(
        "pixels",
        "Evaluate label maps",
        "IoU by class of semantic segmentation; these maps are painted from the boxes of the sample.",
        f"pixels maps/gt maps/pred --classes {MAP_CLASSES} --background 0",
    ),
    Screen(
        "panoptic",
        "Evaluate panoptic segmentations",
        "Panoptic quality of things, stuff and each class, and what changed since other predictions.",
        "panoptic " + " ".join(f"sample_data/panoptic/{name}.json" for name in ("gt", "better")) + " --against"
        " sample_data/panoptic/worse.json",
    ),
    Screen(
        "sensitivity",
        "Sensitivity to the size of objects",
        "What objects of each size lose, and to what.",
        f"sensitivity {GT} {BETTER}",
    ),
    Screen(
        "error",
        "An error with its fix",
        "Boxes that are corners (x1, y1, x2, y2) where COCO has sizes: the message has the option to add.",
        f"{GT} corners.json",
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("screens"))


@pytest.mark.slow
@pytest.mark.parametrize("screen", SCREENS, ids=str)
def test_a_picture_has_what_its_command_prints(screen: Screen, folder: Path) -> None:
    assert text_of((PICTURES / f"{screen.name}.svg").read_text(encoding="utf-8")) == text_of(drawn(screen, folder))


def test_the_page_lists_every_picture() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
    assert {path.stem for path in PICTURES.iterdir()} == {screen.name for screen in SCREENS}
    assert {name for name, one in COMMANDS.items() if one.group == "Evaluate"} <= {screen.name for screen in SCREENS}


def prepared(folder: Path) -> Path:
    """Return a folder with the sample, saved results, label maps, and predictions with the wrong boxes."""
    shutil.copytree(ROOT / "sample_data", folder / "sample_data", ignore=shutil.ignore_patterns("__pycache__"))
    for name, pred in (("better", BETTER), ("worse", WORSE)):
        assert run_here("evaluate", GT, pred, "-q", "-o", f"{name}.json", cwd=folder).returncode == 0
    gt, pred = (json.loads((folder / path).read_text()) for path in (GT, BETTER))
    for side, boxes in (("gt", gt["annotations"]), ("pred", [box for box in pred if box["score"] >= 0.5])):
        (folder / "maps" / side).mkdir(parents=True)
        for image in gt["images"]:
            path = folder / "maps" / side / image["file_name"]
            own = [box for box in boxes if box["image_id"] == image["id"]]
            paint(path, (image["width"], image["height"]), own, [category["id"] for category in gt["categories"]])
    for box in pred:
        x, y, width, height = box["bbox"]
        box["bbox"] = [x, y, x + width, y + height]
    (folder / "corners.json").write_text(json.dumps(pred))
    return folder


def paint(path: Path, size: tuple[int, int], boxes: list[dict], ids: list[int]) -> None:  # type: ignore[type-arg]
    """Write a label map, small boxes above large ones; 0 is the background."""
    width, height = size
    pixels = np.zeros((height, width), np.uint8)
    for box in sorted(boxes, key=lambda box: -box["bbox"][2] * box["bbox"][3]):
        x, y, w, h = map(round, box["bbox"])
        pixels[max(y, 0) : y + h, max(x, 0) : x + w] = 1 + ids.index(box["category_id"])
    Image.fromarray(pixels).save(path)


def drawn(screen: Screen, folder: Path) -> str:
    """Return the picture of what a command prints on a terminal, as SVG without outside resources."""
    argv, env = command(*shlex.split(screen.command)), {"TERM": "xterm-256color", "PYTHONUTF8": "1"}
    with Terminal(argv, columns=COLUMNS, env=env, cwd=folder) as terminal:
        terminal.finish()
    text = shown_on_screen(terminal.written)
    prompt = " \\\n    ".join(textwrap.wrap(f"$ jaccard-eval {screen.command}", COLUMNS - 2 * len("  ")))
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text.from_ansi(f"\x1b[1m{prompt}\x1b[0m\n{text.rstrip()}"), overflow="fold")
    svg = console.export_svg(title="", unique_id=screen.name)
    # Readers of Markdown load no font for a picture: one that is there.
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", FONTS)
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


def text_of(svg: str) -> str:
    """Return the text in a picture, whatever the version of the library that drew it."""
    return "".join(html.unescape(text) for text in re.findall(r"<text [^>]*>([^<]*)</text>", svg))


def page() -> str:
    """Return the page that shows all pictures."""
    parts = [
        "# Screens",
        "For those who want to see it first: what the main commands print on a terminal of 80 columns, of"
        " `sample_data/`. `python tests/test_screens.py` makes this page.",
    ]
    for screen in SCREENS:
        parts += [f"## {screen.title}", screen.about, f"```sh\njaccard-eval {screen.command}\n```"]
        parts.append(f"![{screen.title}](screens/{screen.name}.svg)")
    return "\n\n".join(parts) + "\n"


def write() -> None:
    PICTURES.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        folder = prepared(Path(scratch))
        for screen in SCREENS:
            (PICTURES / f"{screen.name}.svg").write_text(drawn(screen, folder), encoding="utf-8")


if __name__ == "__main__":
    write()
