"""Build the site: `python docs/site/build.py [FOLDER]`, `build/site` by default; any warning or broken link fails.

Sources are assembled in `build/docs`: pages that people wrote, and the reference, generated from the code.
"""

from __future__ import annotations

import sys
from pathlib import Path

from reference_pages import generated_contents, generated_pages
from site_links import broken_links
from sphinx.cmd.build import main as sphinx
from written_pages import DOCS, ROOT, with_contents, written_pages

SITE = Path(__file__).parent
IMAGES = (".png", ".svg")


def assemble(folder: Path) -> None:
    """Write the sources of the site; files that have not changed keep their time, so that Sphinx keeps their pages."""
    pages = written_pages()
    generated = generated_pages(pages)
    # Generated pages are in the lists of one another.
    names, unlisted = set(pages) | set(generated), set(generated)
    pages |= generated
    pages["index.md"] = with_contents(pages["index.md"], names, generated_contents(pages), unlisted=unlisted)
    files = {name: text.encode() for name, text in pages.items()}
    files |= {str(path.relative_to(DOCS)): path.read_bytes() for path in DOCS.rglob("*") if path.suffix in IMAGES}
    files |= {f"_extra/schema/{path.name}": path.read_bytes() for path in (DOCS / "schema").glob("*.json")}
    files |= {"conf.py": (SITE / "conf.py").read_bytes(), "_static/site.css": (SITE / "site.css").read_bytes()}
    for path in folder.rglob("*") if folder.is_dir() else ():
        if path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def main(target: Path) -> int:
    """Return 0 where there is no warning and no broken link."""
    source = ROOT / "build" / "docs"
    assemble(source)
    code = sphinx(
        ["-W", "--keep-going", "-n", "-q", "-b", "html", "-d", str(ROOT / "build/doctrees"), str(source), str(target)]
    )
    problems = broken_links(target)
    print("\n".join([*problems, f"{target}: {len(list(target.rglob('*.html')))} pages, {len(problems)} broken links"]))
    return code or int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build" / "site"))
