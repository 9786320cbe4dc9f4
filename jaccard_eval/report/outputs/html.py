"""The page: a report as one HTML file that fetches nothing; templates are filled in by jinja2.

What a page shows is decided by the feature; here and in the folder of templates is how it looks. A section is drawn by
the template that bears its key, or else block by block.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import cache_from_source
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from jaccard_eval.atomic import replace_file
from jaccard_eval.data.document import to_document
from jaccard_eval.errors import MachineError, UsageError
from jaccard_eval.fixes import Fix
from jaccard_eval.patterns import pattern
from jaccard_eval.report import Reportable, Reporter, ReportOptions, markup
from jaccard_eval.report.model import (
    TEXT_KINDS,
    Chart,
    Drawing,
    Gallery,
    KeyValues,
    Live,
    Note,
    Remark,
    Report,
    Table,
    cell_text,
    look_of,
)
from jaccard_eval.report.sections import build_page
from jaccard_eval.text import printable

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parents[1]
ASSETS, TEMPLATES = FOLDER / "assets", FOLDER / "templates"
LARGEST = 8_000_000  # bytes: browsers become slow, and attachments are refused
BLOCKS = {
    "table": Table,
    "facts": KeyValues,
    "note": Note,
    "drawing": Drawing,
    "chart": Chart,
    "gallery": Gallery,
    "remark": Remark,
}
# What would end a script or begin markup in it; JSON has all of these in strings alone.
_ESCAPES = {character: f"\\u{ord(character):04x}" for character in "<>&"}
# Of our scripts: texts, and regular expressions, which have no blank at the start as divisions do.
_LITERALS = pattern(r'("(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|/(?! )(?:\\.|[^/\\\n])+/)')
_ENDS = pattern(r"([;{(,])\n|\n(?=[})])")
_BLANKS = pattern(r" *([=<>(){}\[\],;:?&|!*%]) *")


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the page of a result: the same text for the same result, whatever the day."""
    page = render_report(build_page(result, replace(options, per_class=True)), options)
    require_size(page)
    return page


def linked_pages(result: Any, name: str, options: ReportOptions) -> Mapping[str, bytes]:
    """Return the page of a result, and those of its runs or cells, which are in the field `name` and its links.

    They are called by number, as names of models and runs may be anything; what has no page gets no place.
    """
    linked = tuple(
        replace(part, place=f"{name}/{row:04}.html" if part.page else "")
        for row, part in enumerate(getattr(result, name), start=1)
    )
    files = {"index.html": render(replace(result, **{name: linked}), options)}
    files |= {part.place: part.page for part in linked if part.place}
    return {name: text.encode("utf-8", "backslashreplace") for name, text in files.items()}


def require_size(page: str) -> None:
    """Refuse a page that is too large, with the options that make it smaller."""
    size = len(page.encode("utf-8", "backslashreplace"))
    if size > LARGEST:
        raise UsageError(
            f"the page would have {size / 1e6:.1f} MB, more than {LARGEST / 1e6:g} MB.",
            fix=Fix.missing("Pass a smaller {gallery}, or fewer classes with {classes}.", gallery=None, classes=None),
        )


def render_report(report: Report, options: ReportOptions) -> str:
    """Return the page of a report that is put together already."""
    style, script = (_assets(suffix) for suffix in (".css", ".js"))
    live = [block for section in report.sections for block in section.blocks if isinstance(block, Live)]
    # Files of images are shown from the disk that the page lies on; nothing is ever sent for.
    has_files = options.large or any(isinstance(block.data, Mapping) and block.data.get("pictures") for block in live)
    drawn = [section if section.key else replace(section, key=f"part-{i}") for i, section in enumerate(report.sections)]
    return render_template(
        "page.html.j2",
        style=style,
        script=script,
        report=report,
        sections=drawn,
        options=options,
        image_sources="file: data:" if has_files else "data:",
        live=live,
    )


def render_template(
    name: str, *, style: str, script: str, more_scripts: str = "", image_sources: str = "data:", **context: Any
) -> str:
    """Return a page with a style and a script, and a policy that lets nothing else of their kinds have any effect."""
    policy = {
        "default-src": "'none'",
        "img-src": image_sources,
        "style-src": _source(style),
        "script-src": _source(script) + more_scripts,
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    sources = "; ".join(f"{of} {source}" for of, source in policy.items())
    page = _environment().get_template(name).render(style=style, script=script, policy=sources, **context)
    return page if page.endswith("\n") else f"{page}\n"


def _assets(suffix: str) -> str:
    """Return all files of a kind as one, that of the whole page first."""
    others = sorted(path for path in ASSETS.glob(f"*{suffix}") if path.stem != "page")
    text = "".join(path.read_text(encoding="utf-8") for path in (ASSETS / f"page{suffix}", *others))
    return squeeze(text) if suffix == ".js" else text


def squeeze(script: str) -> str:
    """Return a script without indents, comments of whole lines and most blanks: a fifth less to send.

    >>> squeeze("  // why" + chr(10) + "  let a = [1, 2], b = `a, ${a}`;")
    'let a=[1,2],b=`a, ${a}`;'
    """
    lines = (line.strip() for line in script.splitlines())
    parts = _LITERALS.split("\n".join(line for line in lines if line and not line.startswith("//")))
    # Odd parts are literals. Signs that may double, + and -, and those of divisions keep their blanks.
    # A line goes on behind what cannot end a statement or has ended one, and before what ends a block.
    return "".join(part if i % 2 else _ENDS.sub(r"\1", _BLANKS.sub(r"\1", part)) for i, part in enumerate(parts))


def _source(text: str) -> str:
    """Name a style or script by its hash, so that nothing else of its kind has any effect on the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _environment() -> Environment:
    import jinja2  # only pages are made with it
    from markupsafe import Markup

    def inert(value: Any) -> Any:
        # Escaped by jinja2 thereafter: what is left to do are characters that no page may have.
        return value if isinstance(value, Markup) else printable(str(value))

    class Compiled(jinja2.BytecodeCache):
        """Templates as Python compiled them, where it keeps compiled modules: to do it anew takes a tenth of a page."""

        def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            # What is damaged is compiled anew.
            with contextlib.suppress(OSError, EOFError, UnpicklingError):
                bucket.bytecode_from_string(_compiled(bucket.key).read_bytes())

        def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            if not sys.dont_write_bytecode:
                with contextlib.suppress(OSError, MachineError):
                    replace_file(_compiled(bucket.key), bucket.bytecode_to_string())

    environment: Environment = jinja2.Environment(
        bytecode_cache=Compiled(),
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=inert,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "cell": cell_text,
        "look": look_of,
        "json": lambda data: Markup(json_text(data)),  # noqa: S704 - escaped by it
        "svg": lambda chart: Markup(markup.draw(chart)),  # noqa: S704 - escaped by the module
        "boxes": lambda image, *how: Markup(markup.draw_image(image, *how)),  # noqa: S704 - escaped by the module
        "numbered": lambda names: {name: row for row, name in enumerate(names)},
        "undrawn": markup.hidden_boxes,
        "rows": lambda table: Markup(markup.rows(table)),  # noqa: S704 - escaped by the module
        "legend": markup.legend,
        # A name may go on in the next line behind a separator; browsers break it anywhere else first.
        "breakable": lambda name: Markup("<wbr>").join(re.split(r"(?<=[/_-])(?=.)", printable(name))),
        "asset": Markup,  # a file of ours
        "template": _template_of,
    }
    environment.tests |= {name: _is_a(kind) for name, kind in BLOCKS.items()}
    environment.tests["textual"] = lambda kind: kind in TEXT_KINDS
    return environment


def _compiled(key: str) -> Path:
    return Path(cache_from_source(str(TEMPLATES / f"{key}.py")))


def _is_a(kind: type) -> Any:
    return lambda block: isinstance(block, kind)


def _template_of(key: str) -> str:
    """Return the template that draws the section of a key."""
    name = f"{re.sub('[^a-z0-9-]', '-', key)}.html.j2"
    return name if (TEMPLATES / name).is_file() else "section.html.j2"


def json_text(data: Any) -> str:
    """Return data as JSON that stands in a script as well."""
    plain: Mapping[str, Any] = to_document(data)
    text = json.dumps(plain, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


REPORTERS = (
    Reporter(
        suffixes=(".html", ".htm"),
        about="page with curves, tables and images",
        render=render,
        errors=True,
    ),
)
