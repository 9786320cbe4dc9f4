"""Count the files that a change costs: make each addition in a copy of the package, and prove that it works.

    python benchmarks/ripple.py [--repo CHECKOUT] [ADDITION ...]

An addition is data: files to create, texts to replace, and proofs that run the result. A text is looked for in the
whole package, and a new file stands beside one that is named, so moves break no recipe; where the code itself
changes, the recipe must follow, and the script prints which text it misses. Files count that then differ from the
original. What the package has no seam for is printed as such.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = "jaccard_eval"
USAGE = 2  # exit code
PARTS = (PACKAGE, "sample_data", "docs")  # of the checkout, that additions and proofs need


class BrokenError(Exception):
    """A recipe that does not fit the code any more, or an addition that does not do what it should."""


@dataclass(frozen=True)
class Workshop:
    """A copy of the checkout to make an addition in, and to run it."""

    root: Path

    @property
    def gt(self) -> Path:
        return self.root / "sample_data/coco/gt.json"

    @property
    def pred(self) -> Path:
        return self.root / "sample_data/coco/better.json"

    def create(self, name: str, text: str, *, beside: str) -> None:
        """Add a module to the folder of another one, whatever folder that is."""
        homes = list((self.root / PACKAGE).glob(f"**/{beside}"))
        if len(homes) != 1:
            raise BrokenError(f"{len(homes)} modules are called {beside}")
        homes[0].with_name(name).write_text(text, encoding="utf-8")

    def replace(self, old: str, new: str, times: int = 1) -> None:
        """Replace a text of the package; it stands there as often as the recipe says."""
        texts = {path: path.read_text(encoding="utf-8") for path in (self.root / PACKAGE).rglob("*.py")}
        homes = {path: text for path, text in texts.items() if old in text}
        found = sum(text.count(old) for text in homes.values())
        if found != times:
            raise BrokenError(f"the package has {found} times, not {times}: {old!r}")
        for path, text in homes.items():
            path.write_text(text.replace(old, new), encoding="utf-8")

    def run(self, *arguments: object, expect: int = 0) -> str:
        """Run the command line in a new folder and return what it prints, notes included."""
        return self._process("-m", PACKAGE, *arguments, expect=expect)

    def python(self, code: str) -> str:
        """Run a piece of Python that uses the package."""
        return self._process("-c", code)

    def document(self, *arguments: object) -> dict[str, Any]:
        """Evaluate the sample and return the JSON document."""
        path = self.root / "result.json"
        self.run("evaluate", self.gt, self.pred, "-o", path, *arguments)
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document

    def _process(self, *arguments: object, expect: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-P", *map(str, arguments)],
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": str(self.root), "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != expect:
            raise BrokenError(f"{arguments[1:]} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout


@dataclass(frozen=True)
class Addition:
    """Something to add: how, how many files it may touch, and what shows that it works.

    Parameters
    ----------
    name : str
    target : int
        Files that it may touch.
    new_files : tuple of (name, module beside it, text)
        A text may be a function of the checkout's root.
    edits : tuple of (old, new) or (old, new, times)
    proofs : mapping of str to function
        What is shown, and how; a function raises `BrokenError`. None: the package has no seam for it.
    """

    name: str
    target: int
    new_files: tuple[tuple[str, str, str | Callable[[Path], str]], ...] = ()
    edits: tuple[tuple[str, str] | tuple[str, str, int], ...] = ()
    proofs: dict[str, Callable[[Workshop], None] | None] | None = None

    def make(self, shop: Workshop) -> None:
        for name, beside, text in self.new_files:
            shop.create(name, text if isinstance(text, str) else text(shop.root), beside=beside)
        for edit in self.edits:
            shop.replace(*edit)


def require(condition: bool, told: object) -> None:
    if not condition:
        raise BrokenError(str(told))


# A metric: the miss rate, of detections at an operating point.


def miss_rate_is_printed(shop: Workshop) -> None:
    told = shop.run(shop.gt, shop.pred, "--fail-over", "missrate[iou=0.5,score=0]=0.9")
    require("missrate[iou=0.5,score=0]" in told, told)


def miss_rate_gates(shop: Workshop) -> None:
    shop.run(shop.gt, shop.pred, "--fail-over", "missrate[iou=0.5,score=0]=0", expect=1)
    rules = "--fail-over", "missrate[iou=0.5,score=0]=1", "--fail-under", "recall[iou=0.5,score=0]=0"
    gates = shop.document(*rules)["gates"]
    missed, found = (gate["value"] for gate in gates)
    require(0 < missed < 1 and abs(missed + found - 1) < 1e-12, gates)


def miss_rate_falls_when_better(shop: Workshop) -> None:
    baseline = shop.root / "baseline.npz"
    shop.run("evaluate", shop.gt, shop.pred, "-o", baseline)
    told = shop.run(
        shop.gt, shop.pred, "--fail-drop", "missrate[iou=0.5,score=0]=0", "--baseline", baseline, expect=USAGE
    )
    require("lower is better for missrate" in told, told)


METRIC = Addition(
    "metric",
    target=2,
    edits=(
        (
            '    Metric("mIoU",',
            '    Metric("missrate", "ratio", (BOXES,), "1 - recall", higher_is_better=False),\n    Metric("mIoU",',
        ),
        (
            '    if name == "FPPI":\n',
            '    if name == "missrate":\n        return 1 - point.recall\n    if name == "FPPI":\n',
        ),
    ),
    proofs={
        "printed": miss_rate_is_printed,
        "gateable": miss_rate_gates,
        "lower is better": miss_rate_falls_when_better,
    },
)

# An option of evaluate: the highest score of the predictions to evaluate.


def score_max_on_the_command_line(shop: Workshop) -> None:
    document, whole = shop.document("--score-max", "0.8"), shop.document()
    require(document["metrics"]["AP"] < whole["metrics"]["AP"], document["metrics"])


def score_max_in_the_library(shop: Workshop) -> None:
    document = shop.document("--score-max", "0.8")
    told = shop.python(
        "from jaccard_eval import evaluate\n"
        f"print(repr(evaluate({str(shop.gt)!r}, {str(shop.pred)!r}, score_max=0.8)['AP']))"
    )
    require(float(told.splitlines()[-1]) == document["metrics"]["AP"], told)


def score_max_is_recorded(shop: Workshop) -> None:
    document = shop.document("--score-max", "0.8")
    require(document["options"].get("score_max") == 0.8, document["options"])
    require("score_max=0.8" in document["signature"], document["signature"])
    shop.run("verify", shop.root / "result.json", shop.gt, shop.pred)


OPTION = Addition(
    "option",
    target=3,
    edits=(
        (
            "    score_min: float | None = _option(",
            '    score_max: float | None = _option("Ignore higher scores.")\n    score_min: float | None = _option(',
        ),
        # Five verbs take what chooses from both sides.
        (
            "    score_min: float | None = None,\n    nms:",
            "    score_max: float | None = None,\n    score_min: float | None = None,\n    nms:",
            5,
        ),
        (
            "    score_min : float, optional\n        Ignore predictions below this score; average",
            "    score_max : float, optional\n        Ignore predictions above this score.\n"
            "    score_min : float, optional\n        Ignore predictions below this score; average",
        ),
        (
            "    if options.nms is not None:\n        pred = _without_rivals",
            "    if options.score_max is not None and pred.boxes.score is not None:\n"
            "        kept = pred.boxes.score <= options.score_max\n"
            '        ignored = {**pred.ignored, "score-max": int(np.count_nonzero(~kept))}\n'
            "        pred = replace(pred, boxes=pred.boxes.take(kept), ignored=ignored)\n"
            "    if options.nms is not None:\n        pred = _without_rivals",
        ),
    ),
    proofs={
        "command line": score_max_on_the_command_line,
        "library": score_max_in_the_library,
        "configuration": None,  # it holds gates alone
        "recorded, and verify repeats it": score_max_is_recorded,
    },
)

# A format: the one of the guide, as it stands there.


def format_of_the_guide(root: Path) -> str:
    guide = (root / "docs" / "adding-a-format.md").read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    (text,) = (block for block in blocks if '"boxlist"' in block)
    return text


def boxlist_is_listed(shop: Workshop) -> None:
    told = shop.run("formats")
    require(re.search(r"^  boxlist +One box a line", told, re.MULTILINE) is not None, told)


def boxlist_reads_its_example(shop: Workshop) -> None:
    path = shop.root / "example.boxlist"
    path.write_text("a.jpg dog 0.9 10 20 30 40\n", encoding="utf-8")
    told = shop.python(
        f"from jaccard_eval import load\nboxes = load({str(path)!r}, role='pred').boxes\n"
        "print(boxes.xywh.tolist(), boxes.score.tolist())"
    )
    require("[[10.0, 20.0, 30.0, 40.0]] [0.9]" in told, told)
    told = shop.run("inspect", path)
    require("boxlist" in told, told)


FORMAT = Addition(
    "format",
    target=1,
    new_files=(("boxlist.py", "kitti.py", format_of_the_guide),),
    proofs={"listed": boxlist_is_listed, "reads its example": boxlist_reads_its_example},
)

# A reporter: the headline and nothing else.

HEADLINE = '''"""The headline of an evaluation on a line of its own."""

from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.numbers import measures_of


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the line."""
    return f"{result.kind} {measures_of(result).overall['AP']:.3f}\\n"


REPORTERS = (Reporter(suffixes=(".headline",), render=render),)
'''


def headline_is_written(shop: Workshop) -> None:
    path = shop.root / "out.headline"
    document = shop.document("-o", path)
    require(path.read_text() == f"evaluation {document['metrics']['AP']:.3f}\n", path.read_text())


def headline_is_in_the_help(shop: Workshop) -> None:
    told = shop.run("help", "outputs")
    require(".headline" in told, told)


REPORTER = Addition(
    "reporter",
    target=1,
    new_files=(("headline.py", "json_.py", HEADLINE),),
    proofs={"written by -o": headline_is_written, "named by --help": headline_is_in_the_help},
)

# A similarity: intervals on a line, which the boxes are the bounds of; see tests/contract for one with its format.

INTERVALS = '''"""Intervals on a line: what two share, over what both cover."""

from dataclasses import dataclass

import numpy as np

from jaccard_eval.similarity import Similarity


@dataclass(frozen=True, eq=False)
class Intervals:
    ends: np.ndarray  # (n, 2)

    def __len__(self):
        return len(self.ends)

    def take(self, rows):
        return Intervals(self.ends[rows])

    def joined(self, others):
        return Intervals(np.concatenate([self.ends, *(other.ends for other in others)]))

    def bounds(self):
        start, end = self.ends.T
        return np.stack((start, 0 * start, end - start, 0 * start + 1), axis=1)

    def hashes(self):
        return self.ends.astype("<f8").view("<u8") @ np.array([3, 5], dtype=np.uint64)

    def scaled(self, xy):
        return Intervals(self.ends * xy[:, :1])

    def shifted(self, xy):
        return Intervals(self.ends + xy[:, :1])

    def to_arrays(self):
        return {"ends": self.ends}

    @classmethod
    def from_arrays(cls, arrays):
        return cls(arrays["ends"])


def overlapping(first, second, i, j, *, crowd=None, threshold=0.0):
    (a, b), (c, d) = first[i].T, second[j].T
    shared = np.maximum(np.minimum(b, d) - np.maximum(a, c), 0)
    overlap = shared / ((b - a) + (d - c) - shared)
    kept = overlap >= threshold
    return i[kept], j[kept], overlap[kept]


SIMILARITY = Similarity("interval", lambda boxes, protocol: boxes.shapes.ends, overlapping, shapes=Intervals)
'''


def intervals_are_evaluated(shop: Workshop) -> None:
    # Both lie in one box of 10; the interval of the prediction shares 8 of 10 with that of the object.
    told = shop.python(
        "import numpy as np\n"
        "from jaccard_eval import BoxTable, evaluate\n"
        "from jaccard_eval.data.protocol import COCO\n"
        "from jaccard_eval.similarity.interval import Intervals\n"
        "def side(end, **score):\n"
        "    shapes = Intervals(np.array([[0.0, end]]))\n"
        "    return BoxTable.from_arrays([0], [0], [[0, 0, 10, 1]], encoding='xywh', shapes=shapes, **score)\n"
        "rules = COCO.with_options(iou_type='interval', iou_thresholds=(0.5, 0.9))\n"
        "result = evaluate(side(10.0), side(8.0, score=[0.9]), protocol=rules)\n"
        "print(round(result['AP[iou=0.5]'], 9), result['AP[iou=0.9]'], 'iou_type=interval' in result.signature)"
    )
    require(told.splitlines()[-1] == "1.0 0.0 True", told)


SIMILARITY = Addition(
    "similarity",
    target=1,
    new_files=(("interval.py", "similarity/boxes.py", INTERVALS),),
    proofs={"evaluated by the library": intervals_are_evaluated},
)

# A protocol: COCO's at one threshold, of any class.


def lenient_is_accepted(shop: Workshop) -> None:
    document = shop.document("--protocol", "lenient")
    require(document["protocol"]["name"] == "lenient", document["protocol"])
    usual = shop.document("--iou", "0.3")
    require(document["metrics"]["AP"] == usual["metrics"]["AP"], document["metrics"])


def lenient_is_in_the_help(shop: Workshop) -> None:
    told = shop.run("help", "protocols")
    require("lenient" in told, told)


PROTOCOL = Addition(
    "protocol",
    target=1,
    edits=(
        (
            '    "voc2012": _VOC2012,\n',
            '    "voc2012": _VOC2012,\n    "lenient": _COCO | {"iou_thresholds": (0.3,)},\n',
        ),
    ),
    proofs={"accepted by name": lenient_is_accepted, "named by --help": lenient_is_in_the_help},
)

ADDITIONS = (METRIC, OPTION, FORMAT, REPORTER, SIMILARITY, PROTOCOL)


@contextmanager
def workshop(repo: Path) -> Iterator[Workshop]:
    """Copy what an addition needs of a checkout to a folder that is then deleted."""
    with tempfile.TemporaryDirectory() as folder:
        for name in PARTS:
            if (repo / name).is_dir():
                shutil.copytree(repo / name, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(repo / name, folder)
        yield Workshop(Path(folder))


def cost(addition: Addition, repo: Path) -> tuple[list[str], list[str]]:
    """Make an addition; return the files that it touched and what was proved, in words."""
    with workshop(repo) as shop:
        addition.make(shop)
        touched = touched_files(repo / PACKAGE, shop.root / PACKAGE)
        proved = []
        for what, proof in (addition.proofs or {}).items():
            if proof is not None:
                proof(shop)
            proved.append(what if proof is not None else f"{what}: no seam")
        return touched, proved


def touched_files(before: Path, after: Path) -> list[str]:
    """Name the files that were added or changed."""
    return sorted(
        path.relative_to(after).as_posix()
        for path in after.rglob("*.py")
        if not (old := before / path.relative_to(after)).exists() or old.read_bytes() != path.read_bytes()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("--repo", type=Path, default=here, help="checkout to change a copy of (default: this one)")
    parser.add_argument("additions", nargs="*", metavar="ADDITION", help="metric, option, ... (default: all)")
    options = parser.parse_args()
    broken = False
    for addition in ADDITIONS:
        if options.additions and addition.name not in options.additions:
            continue
        if addition.proofs is None:
            print(f"{addition.name:12}no seam   (target {addition.target})")
            continue
        try:
            touched, proved = cost(addition, options.repo.resolve())
        except BrokenError as reason:
            broken = True
            print(f"{addition.name:12}broken    {reason}")
            continue
        print(f"{addition.name:12}{len(touched)} files   (target {addition.target})   proved: {'; '.join(proved)}")
        for name in touched:
            print(f"    {name}")
    sys.exit(broken)


if __name__ == "__main__":
    main()
