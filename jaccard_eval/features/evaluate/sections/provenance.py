"""How the page was made: inputs, how they were read, the protocol by field, what is undefined, signature, command."""

from __future__ import annotations

from jaccard_eval.data.result import EvaluationResult, InputSummary
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Block, Column, Section, Table, columns
from jaccard_eval.report.sections import PROVENANCE, correspondence_facts, ignored_text

PLACE = 200


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section."""
    blocks: list[Block] = [_inputs(result), correspondence_facts(result.correspondence)]
    blocks.append(_protocol(result))
    undefined = [(name, metric.reason or "") for name, metric in result.metrics.items() if metric.value != metric.value]
    undefined += [
        (f"{name}[class={row.name}]", metric.reason or "")
        for row in result.per_class
        for name, metric in row.values.items()
        if metric.value != metric.value
    ]
    if undefined:
        blocks.append(Table((Column("undefined", "name"), Column("reason", "text")), tuple(undefined)))
    return [Section("How it was made", tuple(blocks), key=PROVENANCE)]


def _inputs(result: EvaluationResult) -> Table:
    sides = {"ground truth": result.gt, "predictions": result.pred}
    facts = [_facts(side) for side in sides.values()]
    rows = tuple((name, *(of_side[name] for of_side in facts)) for name in facts[0])
    return Table((Column("input", "word"), *columns("text", *sides)), rows)


def _facts(side: InputSummary) -> dict[str, str]:
    return {
        "path": side.path,
        "format": side.format,
        "images": f"{side.images:,}",
        "boxes": f"{side.boxes:,}",
        "classes": f"{side.classes:,}",
        "how it was read": "; ".join(side.details) or f"in {side.units}",
        "ignored": ignored_text(side.ignored) or "nothing",
        "fingerprint": side.fingerprint,
    }


def _protocol(result: EvaluationResult) -> Table:
    """Return every rule of the protocol, as the JSON document has it, and where it comes from."""
    sources = dict(result.protocol.sources)
    rows = []
    for name, value in result.protocol.to_document().items():
        shown = value
        if name == "areas":
            shown = [f"{area.name} {area.low:g} to {area.high:g}" for area in result.protocol.areas]
        text = ", ".join(_plain(item) for item in shown) if isinstance(shown, list) else _plain(shown)
        rows.append((name, text, sources.get(name, "")))
    heads = (Column("rule", "name"), Column("value", "text"), Column("source", "text"))
    if not any(row[-1] for row in rows):
        return Table(heads[:-1], tuple(row[:-1] for row in rows))
    return Table(heads, tuple(rows))


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
