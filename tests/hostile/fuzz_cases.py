"""Cases of the command-line fuzzer: valid inputs of every kind, and what a seed makes of them.

A case is data: the words of a command line and a list of damages, each with a seed of its own. The same seed and number
give the same case, and a case without one of its parts is a case again, so that a failing one can be shrunk.
"""

import random
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np
from command_line import COMMANDS, run_process
from hostile_strings import STRINGS
from mutations import mutate
from PIL import Image
from valid_inputs import write_example

from jaccard_eval.formats import format_names

TRUTH = ("gt", "labels", "data")  # how names of ground truth start in the sample data
OLD = "old\n"
SETTINGS = {
    "settings/names.txt": "person\nbicycle\ncar\ncat\ndog\n",
    "settings/map.json": '{"dog": "cat", "car": "car"}',
    "settings/map.yaml": "dog: cat\ncar: car\n",
    "settings/slices.toml": '[slices]\nnight = ["street_0*"]\nrest = ["*"]\n',
    "settings/groups.csv": "image,group\n" + "".join(f"street_{i:02}.png,{i % 3}\n" for i in range(1, 13)),
    "settings/metrics.json": '{"speed": {"ms": 12.5}, "size": 3}',
    "settings/list.txt": "a\nb\n",
    "settings/colors.txt": "0 0 0 road\n255 0 0 car\n",
    "settings/jaccard-eval.toml": (
        '[evaluate]\nper-class = true\niou = [0.5, 0.75]\n[gates]\nbaseline = "../saved/result.json"\n'
        'bootstrap = { resamples = 20, seed = 1 }\nslices.night = ["street_0*"]\n'
        '[[gates.rules]]\nid = "floor"\nmetric = "AP"\nmin = 0.45\nwarn-min = 0.48\n'
        '[[gates.rules]]\nmetric = "AP50"\nmax-drop = 0.01\n'
    ),
    "settings/jaccard-eval.yaml": "evaluate:\n  iou: 0.5\ngates:\n  rules:\n    - {metric: AP, min: 0.1}\n",
    "out/old.json": OLD,
}
OUTPUTS = (
    *(
        f"out/new.{suffix}"
        for suffix in [
            "json",
            "npz",
            "md",
            "txt",
            "csv",
            "xlsx",
            "html",
            "xml",
            "prom",
            "svg",
            "png",
            "parquet",
            "weird",
        ]
    ),
    *("out/badge.json", "out/metrics.txt", "out/curves.csv", "out/images.csv", "out/thresholds.yaml", "out/old.json"),
    *("out/gl-code-quality-report.json", "-", "out", "out/missing/x.json", "out/é猫.md", ""),
)
RULES = ("AP=0.5", "AP50=0.9", "AP=0", "recall[iou=0.5,score=0.4,class=dog]=0.9", "mAP@0.5=0.1", "AP[class=*]=0.2")
RULES_OF_CLASSES = ("mIoU=0.5", "IoU[class=road]=0.1", "PQ=0.5", "RQ_things=0.1", "FP[class=person]=2")
NUMBERS = ("0", "0.3", "0.5", "1")
COUNTS = ("1", "2", "20")
NAMES = ("settings/names.txt", "dog,cat", "yolo/data.yaml")
PLAUSIBLE: dict[str, tuple[str, ...]] = {
    "--protocol": ("coco", "voc2007", "voc2012", "points", "points=4,8", "nwpu", "cells", "dsb2018"),
    "--against": ("voc2007", "voc2012", "coco", "panoptic/better.json"),
    "--iou": ("0.5", "0.5,0.75", "0.5:0.95:0.05"),
    "--max-dets": ("1,10,100", "none", "5"),
    "--areas": ("small=0:32^2,large=32^2:inf", "all=0:inf"),
    **dict.fromkeys(("--classes", "--exclude-classes"), ("dog", "dog,cat", "car")),
    **dict.fromkeys(("--score-min", "--nms", "--assume-score"), NUMBERS),
    **dict.fromkeys(("--box-iou", "--moved-iou", "--pair-iou"), NUMBERS),
    **dict.fromkeys(("--score", "--conf"), ("0.4", "best-f1")),
    **dict.fromkeys(("--names", "--gt-names", "--pred-names"), NAMES),
    **dict.fromkeys(("--images", "--gt-images", "--pred-images"), ("yolo/images/val", "yolo/images", "settings")),
    "--split": ("val", "train", "test"),
    **dict.fromkeys(("--gt-format", "--pred-format", "--to"), tuple(format_names())),
    **dict.fromkeys(("--gt-mask-axes", "--pred-mask-axes"), ("xy", "yx", "transposed", "row-major", "wh")),
    **dict.fromkeys(
        ("--gt-resized", "--pred-resized"), ("letterbox:640", "rot90+pad:640", "short:8,13", "offset:-9,1")
    ),
    **dict.fromkeys(("--gt-columns", "--pred-columns"), ("box", "conf-box", "box-conf", "polygon", "class=a,score=b")),
    "--class-map": ("settings/map.json", "settings/map.yaml", "dog=cat", "id+1", "auto"),
    **dict.fromkeys(("--fail-under", "--fail-over"), (*RULES, *RULES_OF_CLASSES)),
    **dict.fromkeys(("--fail-drop", "--fail-significant-drop", "--fail-inferior"), (*RULES, *RULES_OF_CLASSES)),
    "--baseline": (
        "saved/result.json",
        "saved/run.npz",
        "saved/pixels.json",
        "saved/panoptic.json",
        "saved/missing.json",
    ),
    "--metric": ("speed=3", "a.b=1e-3"),
    "--metrics-file": ("settings/metrics.json",),
    "--bootstrap": COUNTS,
    "--confidence": ("0.9", "0.5"),
    "--seed": ("0", "7"),
    "--group-by": ("folder", "settings/groups.csv"),
    "--slice": ("night=street_0*", "all=**"),
    "--slices": ("settings/slices.toml",),
    "--sort": ("AP", "name", "gt", "AP50", "PQ"),
    **dict.fromkeys(("--top", "--worst", "--worst-images", "--boxes", "--bins"), COUNTS),
    "--allow": ("box-empty", "class-mapping", "format-ambiguous"),
    "--config": ("settings/jaccard-eval.toml", "settings/jaccard-eval.yaml"),
    "--name": ("A=small", "B=big"),
    "--by": ("iou", "ioa"),
    "--edges": ("0,32,96", "10,20"),
    "--pixels": ("1", "2,4"),
    "--colors": ("settings/colors.txt",),
    "--list": ("settings/list.txt",),
    "--ignore": ("255", "0"),
    "--background": ("0", "1"),
    **dict.fromkeys(("--gt-masks", "--pred-masks", "--against-masks"), ("panoptic/gt", "panoptic/worse")),
    "--dilation-ratio": ("0.005", "0.1"),
    "--clip": ("0,0,12,12",),
    "--image": ("street_01.png", "street_01"),
    **dict.fromkeys(("--gt-index", "--pred-index"), ("0", "1")),
    **dict.fromkeys(("--gt", "--dt"), ("coco/gt.json", "coco/better.json", "yolo/labels")),
}
WRITTEN = ("--output", "--baseline")  # options that name what may be written: nothing outside the folder
ODD_WORDS = (
    *("", " ", "-", "--", "0", "-1", "-0.0", "1.5", "nan", "inf", "-inf", "1e400", "1e-400", "9" * 40, "0x10", "1_000"),
    *("true", "none", "None", "null", "=", "a=", "=1", "a=b=c", ",", ",,", ":", "a:b", "0:1:0", "0:1:-1", "1:0:0.1"),
    *("[", "]", "*", "**", "[a", "AP[", "AP[iou=", "AP[iou=2]", "AP[class=]", "AP=nan", "AP=", "AP=1e999", "AP50=-1"),
    *(
        "../x",
        "missing/file.json",
        "settings",
        "coco/gt.json",
        "saved/run.npz",
        "x" * 5000,
        "a\nb",
        "%s{0}",
        "~",
        "$HOME",
    ),
    *("--help", "--json", "--nope", "-q", "-o", "--iou=", "\udcff\udcfe", "é猫", "\u202e", "\x1b[2J"),
)
ENDLESS = ("/dev/null", "/dev/zero", "/proc/self/environ", "http://localhost/x.json")  # values to read from only
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    *({},) * 6,
    {"NO_COLOR": "1"},
    {"FORCE_COLOR": "1"},
    {"COLUMNS": "1"},
    {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "ascii"},
    {"CI": "true"},
    {"PYTHONHASHSEED": "1"},
)


@dataclass(frozen=True)
class Damage:
    """A mutation of one file below an input."""

    file: str
    seed: int


@dataclass(frozen=True)
class Case:
    """One run: the words that must stay, groups of words that may go, and what happens to the files before."""

    name: str
    head: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]
    damages: tuple[Damage, ...]
    environment: tuple[tuple[str, str], ...]
    renamed: tuple[tuple[str, str], ...] = ()  # inputs, and the names of the wrong suffix that they have instead

    @property
    def words(self) -> list[str]:
        return [*self.head, *(word for group in self.options for word in group)]

    def smaller(self) -> list["Case"]:
        """The case without one of its parts, for each."""
        cases = [replace(self, environment=())] if self.environment else []
        for field in ("options", "damages"):
            parts = getattr(self, field)
            cases += [replace(self, **{field: parts[:i] + parts[i + 1 :]}) for i in range(len(parts))]
        return cases


class Stock:
    """A folder with valid inputs of every kind, from which cases take what they read."""

    def __init__(self, sample_data: Path, folder: Path) -> None:
        """Copy the sample data; write examples, settings, label maps, and results saved by the program itself."""
        self.folder = folder
        shutil.copytree(sample_data, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        formats = [path for path in sorted(folder.iterdir()) if path.is_dir()]
        for name in format_names():
            write_example(folder / "examples", name)
        for name, text in SETTINGS.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        self._save_results()
        self._draw_label_maps()
        for name, source in (("gt", "gt"), ("pred/a", "worse"), ("pred/b", "better")):
            (folder / "many" / name).mkdir(parents=True)
            shutil.copy(folder / f"coco/{source}.json", folder / "many" / name / "set.json")
        (folder / "many/suite.toml").write_text('gt = "gt/{set}.json"\npred = "pred/{model}/{set}.json"\n')
        inputs = [path for place in formats for path in sorted(place.iterdir()) if path.name != "images"]
        names = [path.relative_to(folder).as_posix() for path in inputs]
        self.gt = [name for name in names if name.split("/")[1].startswith(TRUTH)]
        self.pred = [name for name in names if name not in self.gt]
        self.any = [*names, *sorted(f"examples/{path.name}" for path in (folder / "examples").iterdir())]
        self.saved = sorted(f"saved/{path.name}" for path in (folder / "saved").iterdir())

    def _save_results(self) -> None:
        saved, gt, pred = self.folder / "saved", self.folder / "coco/gt.json", self.folder / "coco/worse.json"
        saved.mkdir()
        outputs = [word for name in ("result.json", "run.npz") for word in ("-o", saved / name)]
        rules = ("--errors", "--bootstrap", "5", "--per-class")
        segments = [self.folder / f"panoptic/{side}.json" for side in ("gt", "worse")]
        for argv in (
            ["evaluate", gt, pred, *outputs, *rules],
            ["panoptic", *segments, "-o", saved / "panoptic.json"],
            ["convert", gt, self.folder / "coco/gt.parquet", "--to", "parquet"],
            ["convert", pred, self.folder / "coco/worse.arrow", "--to", "arrow"],
        ):
            done = run_process(*argv, "-q")
            if done.returncode != 0:
                raise RuntimeError(done.stderr)

    def _draw_label_maps(self) -> None:
        rng = np.random.default_rng(0)
        for side in ("gt", "pred"):
            (self.folder / "pixels" / side).mkdir(parents=True)
            for name in ("a", "b"):
                classes = rng.integers(0, 3, (20, 30)).astype(np.uint8)
                Image.fromarray(classes).save(self.folder / "pixels" / side / f"{name}.png")
        maps = ["pixels", self.folder / "pixels/gt", self.folder / "pixels/pred"]
        done = run_process(*maps, "-q", "-o", self.folder / "saved/pixels.json")
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def draw(self, seed: int, number: int) -> Case:
        """Return a case; the same for the same seed and number."""
        rng = random.Random(f"{seed} {number}")
        command = rng.choice((*COMMANDS, "evaluate", "evaluate", "gate", "compare", "convert"))
        head = (command, *self.arguments(command, rng))
        options = tuple(_option(command, rng) for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2, 4))))
        options += ((rng.choice(ODD_WORDS),),) if rng.random() < 0.05 else ()
        options += (("-o", rng.choice(OUTPUTS)),) if rng.random() < 0.3 and command not in ("help", "formats") else ()
        read = {
            path for word in (*head, *(word for group in options for word in group)) for path in self._read_by(word)
        }
        renamed = ()
        if rng.random() < 0.06:
            suffix = rng.choice(
                (".json", ".csv", ".txt", ".xml", ".npz", ".parquet", ".yaml", ".jsonl", ".png", "", ".gz")
            )
            renamed = tuple(
                (word, f"settings/renamed{suffix}") for word in sorted(read) if (self.folder / word).is_file()
            )
            renamed = renamed[:1]
            head = tuple(dict(renamed).get(word, word) for word in head)
        files = sorted(
            path.relative_to(self.folder).as_posix()
            for name in read
            for path in ((self.folder / name).rglob("*") if (self.folder / name).is_dir() else [self.folder / name])
            if path.is_file()
        )
        n_damages = rng.choice((0, 1, 1, 1, 2, 4)) if files else 0
        damages = tuple(Damage(rng.choice(files), rng.getrandbits(32)) for _ in range(n_damages))
        return Case(f"{seed}-{number}", head, options, damages, tuple(rng.choice(ENVIRONMENTS).items()), renamed)

    def arguments(self, command: str, rng: random.Random) -> tuple[str, ...]:
        """Return the inputs of a command, most of which it can read."""
        pick = rng.choice
        same = pick((True, True, False))  # most pairs are of one format, for which all goes well
        gt = pick(self.gt)
        own = [name for name in self.pred if name.split("/")[0] == gt.split("/")[0]] if same else []
        pred = pick(own or self.pred)
        match command:
            case "compare":
                return (gt, *(pick(own or self.pred) for _ in range(rng.choice((2, 2, 3)))))
            case "explain":
                return (*pick(((gt, pred), (pick(self.saved),))), *pick(((), ("AP",), ("AP50",), ("AP[class=dog]",))))
            case "gate":
                return (pick((*self.saved, pick(self.any))), "--fail-under", pick(("AP=0.4", "mIoU=0.1", "PQ=0.5")))
            case "verify":
                return (pick(self.saved), gt, pred)
            case "inspect":
                return pick(((gt, pred), (pick(self.any),)))
            case "convert":
                target = pick(("out/new", *(f"out/new{suffix}" for suffix in (".json", ".csv", ".xml", ".parquet"))))
                return (pick(self.any), target, "--to", pick(format_names()))
            case "nms":
                return (pred, "-o", f"out/new{Path(pred).suffix}")
            case "partition":
                return (gt, pred, "-o", "out/parts")
            case "report":
                return (pick(self.saved),)
            case "suite":
                return (pick(("many", "many/suite.toml")),)
            case "pixels":
                return ("pixels/gt", "pixels/pred")
            case "panoptic":
                return ("panoptic/gt.json", pick(("panoptic/better.json", "panoptic/worse.json")))
            case "overlap":
                boxes = ("0,0,10,10", "5,5,20,20", "0,0,0,0", pick(ODD_WORDS), "1e308,0,1e308,1", "nan,0,1,1")
                return (pick(boxes), pick(boxes))
            case "completion":
                return (pick(("bash", "zsh", "fish", pick(ODD_WORDS))),)
            case "help":
                return (pick(("outputs", "metrics", "box-encoding", "evaluate", pick(ODD_WORDS))),)
            case "formats":
                return ()
            case _:
                return (gt, pred)

    def _read_by(self, word: str) -> list[str]:
        if not word or word.startswith(("out", ".", "-", "/")) or "\n" in word or len(word) > 100:
            return []
        return [word] if (self.folder / word).exists() else []

    def prepare(self, case: Case, folder: Path) -> None:
        """Make the folder in which a case runs: the inputs that its words name, damaged."""
        needed = {
            "settings",
            "saved",
            "out",
            *(path.split("/")[0] for word in case.words for path in self._read_by(word)),
        }
        needed |= {name.split("/")[0] for name in (*(damage.file for damage in case.damages), *dict(case.renamed))}
        for name in sorted(needed):
            shutil.copytree(self.folder / name, folder / name)
        for damage in case.damages:
            mutate(folder / damage.file, random.Random(damage.seed))
        for source, target in case.renamed:
            if (folder / source).is_file():
                shutil.copyfile(folder / source, folder / target)


def _option(command: str, rng: random.Random) -> tuple[str, ...]:
    option = rng.choice([one for one in COMMANDS[command].params if isinstance(one, click.Option)])
    flag = option.opts[-1]
    if option.is_flag:
        return (rng.choice((*option.opts, *option.secondary_opts)),)
    if flag == "--output":
        return (flag, rng.choice(OUTPUTS))
    known = PLAUSIBLE.get(flag, ())
    if isinstance(option.type, click.Choice):
        known = tuple(map(str, option.type.choices))
    if known and rng.random() < 0.8:
        return (flag, rng.choice(known))
    odd = (*ODD_WORDS, *(text for text in STRINGS.values() if "\0" not in text and "\ud800" not in text))
    return (flag, rng.choice(odd if flag in WRITTEN else (*odd, *ENDLESS)))
