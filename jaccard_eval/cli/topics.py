"""What ``jaccard-eval help`` prints besides the help of commands: topics, and what is explained about findings."""

from __future__ import annotations

import contextlib
import locale
import math
import platform
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from importlib import metadata

import click

from jaccard_eval.codes import CODES, STOPS, explanation, introduction
from jaccard_eval.errors import UsageError
from jaccard_eval.extensions import METRICS as ADDED_METRICS
from jaccard_eval.extensions import PROTOCOLS, REPORTERS, SIMILARITIES, extension_packages
from jaccard_eval.frozen import dataclass
from jaccard_eval.native import describe_core
from jaccard_eval.patterns import pattern
from jaccard_eval.text import aligned, printable

EXIT_CODES = (
    ("0", "Computed, and every gate passed."),
    ("1", "A gate failed, and nothing else."),
    ("2", "Usage or configuration, including its files: rules, baseline, names, slices, groups."),
    ("3", "The data cannot be read or used."),
    ("4", "Environment: cannot write, out of memory, an extra is not installed."),
    ("5", "Internal error (a bug)."),
    ("130", "Interrupted."),
)


def _write_outputs(formatter: click.HelpFormatter) -> None:
    from jaccard_eval.report import describe_outputs  # looks for what there is

    formatter.write_text("-o PATH (--output) also writes the result to a file. Repeatable; '-' is the standard output.")
    by_suffix, by_name = describe_outputs()
    for title, rows in (("By suffix", by_suffix), ("By file name", by_name)):
        with formatter.section(title):
            formatter.write_dl(rows)
    _write_added(formatter, REPORTERS)


def _write_added(formatter: click.HelpFormatter, group: str, title: str = "Added by installed packages") -> None:
    """List what packages add to a group, if any does."""
    if added := extension_packages(group):
        with formatter.section(title):
            formatter.write_dl(added)


def _write_metrics(formatter: click.HelpFormatter) -> None:
    from jaccard_eval.data.metricref import ANY, BOXES, COCO_SUMMARY, MAP_CLASS, MAPS, METRICS, SEGMENTS

    titles = {
        (BOXES,): "Boxes",
        (MAPS, MAP_CLASS): "Label maps ('jaccard-eval pixels')",
        (SEGMENTS,): "Panoptic segmentation ('jaccard-eval panoptic')",
        (ANY,): "All results",
    }
    for subjects, title in titles.items():
        rows = [
            (metric.name, "; ".join([metric.meaning, *metric.aliases]))
            for metric in METRICS.values()
            if metric.of[0] in subjects
        ]
        with formatter.section(title):
            formatter.write_dl(rows)
    _write_added(formatter, ADDED_METRICS)
    with formatter.section("How to name one"):
        formatter.write_dl(
            [
                (", ".join(COCO_SUMMARY[:3]), "all IoU thresholds, or one; also map, mAP50, mAP50-95, mAP@.5"),
                ("AP[subset=easy]", "a subset that the protocol has; AP_easy where no size has the name"),
                ("AP_small, AR100", "one area range, at most so many detections per image and class"),
                ("AP_r, AP_c, AP_f", "classes that are rare, common or frequent (--protocol lvis)"),
                ("AP50[class=dog]", "one class, also AP50[dog]; iou, area, max_dets: AP[iou=0.75,area=small]"),
                ("F1[iou=0.5,score=0.4]", "at a score, or at score=best-f1; without one, at --score"),
                ("recall[precision=0.9]", "highest recall with that precision; also recall=0.8 and fppi=1"),
            ]
        )


def _facts(protocol: str) -> str:
    """Return the rules of a protocol that people ask for, in one line."""
    from jaccard_eval.data.known_protocols import RULES, measure_name

    def spread(numbers: Sequence[float]) -> str:
        return f"{numbers[0]:g}" if len(numbers) == 1 else f"{numbers[0]:g}:{numbers[-1]:g} ({len(numbers)})"

    rules = RULES[protocol]
    points, caps = rules["recall_points"], ", ".join(map(str, rules["max_dets"]))
    areas = ", ".join(area for area, (_, high) in rules["areas"].items() if high < math.inf)
    measure = measure_name(rules.get("iou_type", "bbox"), rules.get("overlap", "area"))
    facts = (
        f"{measure} {spread(rules['iou_thresholds'])}",
        f"{points or 'all'} recall points",
        f"max dets {caps or 'none'}",
        f"areas {areas}" if areas not in ("", "all") else "",
        f"subsets {', '.join(rules['subsets'])}" if rules.get("subsets") else "",
        f"ignored: boxes flagged {', '.join(rules['ignored_flags'])}" if rules["ignored_flags"] else "",
        f"also {', '.join(rules['metrics'])}" if rules.get("metrics") else "",
    )
    return "; ".join(filter(None, facts))


def named(word: str, options: Sequence[click.Parameter]) -> list[tuple[str, str]]:
    """Return what a word names: protocols, metrics, tools, formats, kinds of shapes and options, with what each is."""
    from jaccard_eval.data.known_protocols import KINDS, RULES, SIGMAS, sigmas_name
    from jaccard_eval.data.known_tools import TOOLS
    from jaccard_eval.data.metricref import METRICS, MetricRef, as_subset
    from jaccard_eval.formats import format_module, format_names

    asked, found = word.casefold(), []
    if asked in RULES:
        found.append((f"--protocol {asked}", _facts(asked)))
    for metric in METRICS.values():
        if asked in (name.casefold() for name in (metric.name, *metric.aliases)):
            best = "higher is better" if metric.higher_is_better else "lower is better"
            found.append((f"metric {metric.name}", f"{metric.meaning}; {best}; of {metric.of[0]}"))
    if not found:
        with contextlib.suppress(UsageError):
            ref = MetricRef.parse(word)
            ends = RULES["coco"]["areas"].get(ref.area or "")
            parts = [METRICS[ref.name].meaning]
            parts += [f"at IoU {ref.iou:g}"] if ref.iou is not None else []
            parts += [f"within {ref.max_dets} detections of an image and class"] if ref.max_dets else []
            parts += [f"of objects of the range {ref.area}"] if ref.area else []
            parts += [f"which is {ends[0]:,.0f} to {ends[1]:,.0f} px² by coco"] if ends else []
            by = [name for name, rules in RULES.items() if ref.area in rules.get("subsets", {})]
            ranges = {area for rules in RULES.values() for area in rules["areas"]}
            if by:
                parts += [f"{'or ' if ref.area in ranges else ''}{as_subset(word)} by {', '.join(by)}"]
            found.append((f"metric {ref if ref.area in ranges or not by else as_subset(word)}", ", ".join(parts)))
    found += [
        (tool.name, f"prints {tool.prints}; --protocol {tool.protocol}: {tool.close}")
        for tool in TOOLS
        if asked in (tool.name.casefold(), tool.name.casefold().partition(" ")[0].removesuffix("'s"), tool.protocol)
    ]
    if (sigmas := sigmas_name(asked)) in SIGMAS:
        ends = f"{min(SIGMAS[sigmas]):g} to {max(SIGMAS[sigmas]):g}"
        found.append((f"--sigmas {sigmas}", f"{len(SIGMAS[sigmas])} keypoints, {ends}; with --iou-type keypoints"))
    if asked in format_names():
        about = f"{format_module(asked).FORMAT.summary}; 'jaccard-eval formats {asked}' has an example"
        found.append((f"format {asked}", about))
    if asked in KINDS:
        found.append((f"--iou-type {asked}", KINDS[asked]))
    known = [option for option in options if isinstance(option, click.Option)]
    found += [(f"option --{asked}", option.help or "") for option in known if f"--{asked}" in option.opts]
    return found


def _write_protocols(formatter: click.HelpFormatter) -> None:
    from jaccard_eval.data.known_protocols import RULES

    formatter.write_dl([(name, _facts(name)) for name in RULES])
    formatter.write_paragraph()
    formatter.write_text("Choose one with --protocol; --iou, --max-dets and --areas replace its rules.")
    _write_added(formatter, PROTOCOLS)
    _write_added(formatter, SIMILARITIES, "Added by installed packages for --iou-type")


def _write_findings(formatter: click.HelpFormatter) -> None:
    formatter.write(_laid_out(introduction().partition("\n")[2], formatter.width) + "\n")  # without the title
    formatter.write_paragraph()
    formatter.write_text("'jaccard-eval help CODE' explains a finding: what it means, how it happens, how to fix it.")
    for title, codes in (("Stop the run unless allowed", STOPS), ("All others", sorted(CODES.difference(STOPS)))):
        with formatter.section(title):
            formatter.write(_filled("  ".join(codes), formatter.width, "  ", "  ") + "\n")


@dataclass(frozen=True)
class Topic:
    """What can be asked about besides commands and findings."""

    about: str
    write: Callable[[click.HelpFormatter], None]


TOPICS = {
    "outputs": Topic("What -o writes, by suffix and file name.", _write_outputs),
    "exit-codes": Topic("What the exit code means.", lambda formatter: formatter.write_dl(EXIT_CODES)),
    "metrics": Topic("Metrics, and how to name one.", _write_metrics),
    "protocols": Topic("Evaluation rules of each --protocol.", _write_protocols),
    "findings": Topic("Codes of warnings and errors; 'help CODE' explains one.", _write_findings),
}


def finding_page(name: str, *, width: int) -> str:
    """Return what is explained about a finding, wrapped, except tables and messages, which stay as they are."""
    return f"{name}\n\n{_laid_out(explanation(name), width)}"


def _laid_out(markdown: str, width: int) -> str:
    """Wrap paragraphs and items of lists, and indent messages without their fences."""
    paragraphs = []
    for paragraph in re.split(r"\n{2,}", markdown.strip("\n")):
        if paragraph.startswith("```"):
            message = re.sub(r"^```\w*\n?", "", paragraph, flags=re.MULTILINE).rstrip()
            lines = [_filled(line, width, "    ", " " * 8) for line in message.split("\n")]
            paragraphs.append("\n".join(lines))
        elif paragraph.startswith("|"):
            paragraphs.append(paragraph)
        else:
            # Emphasis is for pages; marks of items have a blank behind them.
            plain = re.sub(r"(\*\*?)(?=\S)(.+?)(?<=\S)\1", r"\2", paragraph, flags=re.DOTALL)
            items = re.split(r"\n(?=\s*[*-] )", plain)
            paragraphs.append("\n".join(_item(item, width) for item in items))
    return "\n\n".join(paragraphs)


def _item(text: str, width: int) -> str:
    """Wrap a paragraph, or an item of a list below its mark."""
    found = re.match(r"(\s*)([*-] )?", text)
    indent, mark = (found[1], found[2] or "") if found else ("", "")
    return _filled(" ".join(text.split()), width, indent, indent + " " * len(mark))


def _filled(text: str, width: int, first: str = "", rest: str = "") -> str:
    """Wrap at blanks only: codes and options stay whole."""
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


DISTRIBUTION = "jaccard-eval"
_NEEDED = pattern(r"""(?P<name>[\w.-]+)[^;]*(?:;.*extra == ["'](?P<extra>[\w-]+)["'])?""")
_TESTS = "test"


def describe_environment() -> list[str]:
    """Return lines with Python, system, locale, the compiled core, and the version of each library that can be used."""
    rows = [
        ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("platform", platform.platform()),
        ("locale", f"{locale.setlocale(locale.LC_CTYPE)}, output {sys.stdout.encoding}"),
        ("native", describe_core()),
        *_libraries(),
    ]
    return aligned(tuple((name, printable(value)) for name, value in rows))


def _libraries() -> list[tuple[str, str]]:
    try:
        needed = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:  # run from a copy of the files
        needed = []
    found: list[tuple[str, str]] = []
    for requirement in needed:
        match = _NEEDED.match(requirement)
        if match is None or match["extra"] == _TESTS or match["name"] in dict(found):  # several extras may need one
            continue
        try:
            version = metadata.version(match["name"])
        except metadata.PackageNotFoundError:
            version = f"not installed (extra {match['extra']})" if match["extra"] else "not installed"
        found.append((match["name"], version))
    return found
