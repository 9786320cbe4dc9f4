"""Pages that people wrote: found by listing, linked as in the repository, in the order of `docs/index.md`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXPLAINED = ROOT / "jaccard_eval" / "explained"
FORMATS = ROOT / "jaccard_eval" / "formats"
LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)\s#]*)(#[^)\s]*)?(?=\))")
# Files outside docs/ that have a page of the site.
OUTSIDE = {path.name: path.name.lower() for path in sorted(ROOT.glob("*.md")) if path.name != "README.md"}
OUTSIDE["benchmarks/README.md"] = "benchmarks.md"
UNLISTED = "More"


def repository_pages() -> list[Path]:
    """Return the Markdown of the repository: below docs/, those outside that the site has, and the README."""
    return [ROOT / "README.md", *(ROOT / outside for outside in OUTSIDE), *sorted(DOCS.rglob("*.md"))]


def written_pages() -> dict[str, str]:
    """Return the text of every page below docs/, and of the pages outside, by its name on the site."""
    sources = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    sources |= {name: ROOT / outside for outside, name in OUTSIDE.items()}
    return {name: relinked(path.read_text(encoding="utf-8"), path, name) for name, path in sources.items()}


def relinked(text: str, source: Path, name: str) -> str:
    """Turn links that the site has elsewhere: to pages outside docs/, to formats and to what explains findings."""

    def turned(found: re.Match[str]) -> str:
        path, anchor = found[1], found[2] or ""
        if not path:
            return found[0]
        target = (source.parent / path).resolve()
        inside = target.relative_to(ROOT).as_posix()
        up = "../" * name.count("/")
        if inside in OUTSIDE:
            return f"{up}{OUTSIDE[inside]}{anchor}"
        if target.parent == EXPLAINED:
            return f"{up}findings/{target.name}"
        if target.parent == FORMATS:
            return f"{up}formats/{target.stem.rstrip('_')}.md"
        if inside == "README.md":
            return f"{up}index.md"
        if target.is_relative_to(DOCS / "schema") and target.suffix == ".json":
            return f"{up}schema/{target.stem}.md"
        if target.is_relative_to(DOCS):
            return f"{up}{target.relative_to(DOCS).as_posix()}{anchor}"
        raise SystemExit(f"{source}: the site has no page for {found[0]}: link to docs/, or list it in OUTSIDE")

    # Fenced blocks have no links.
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if place % 2 else LINK.sub(turned, part) for place, part in enumerate(parts))


def contents(index: str) -> dict[str, list[str]]:
    """Return the pages that each section of the first page lists, in its order; the first of several lists counts."""
    sections: dict[str, list[str]] = {}
    seen: set[str] = set()
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        listed = re.findall(r"^\* \[[^\]]*\]\(([^)#]+\.md)\)", text, re.MULTILINE)
        fresh = [page for page in dict.fromkeys(listed) if page not in seen]
        seen.update(fresh)
        if fresh:
            sections[title.strip()] = fresh
    return sections


def with_contents(index: str, names: Set[str], generated: Mapping[str, Sequence[str]], *, unlisted: Set[str]) -> str:
    """Add the reference, and what the sidebar shows: all sections, and pages that none of them lists."""
    sections = contents(index)
    missing = sorted({page for pages in sections.values() for page in pages} - names)
    if missing:
        raise SystemExit(f"docs/index.md lists pages that do not exist: {', '.join(missing)}")
    written = {page for pages in sections.values() for page in pages}
    everywhere = sections | {
        title: [page for page in pages if page not in written] for title, pages in generated.items()
    }
    rest = sorted(names - {"index.md"} - unlisted - {page for pages in everywhere.values() for page in pages})
    if rest:
        print(f"not listed in docs/index.md, so below {UNLISTED!r}: {', '.join(rest)}")
        everywhere = {**sections, UNLISTED: rest, **everywhere}
    trees = [
        f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n"
        + "".join(f"{page.removesuffix('.md')}\n" for page in pages)
        + "```\n"
        for title, pages in everywhere.items()
    ]
    # Nothing in the repository leads to generated pages; on a phone the sidebar is closed.
    shown = [f"## {title}\n\n" + "".join(f"* [](/{page})\n" for page in everywhere[title]) for title in generated]
    return "\n".join([index, *shown, *trees])
