"""Pages in Debian's chromium: each is built once, and none may print, fetch, fail or ask anything while a test looks.

Another chromium is named by ``JACCARD_EVAL_CHROMIUM``. Without one, or without the packages, these tests are skipped.
"""

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser_pages import PAGES
from command_line import run_here

CHROMIUM = Path(os.environ.get("JACCARD_EVAL_CHROMIUM", "/usr/bin/chromium"))
# Nothing of its own goes out: the tests look at every request of a page.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
PACKAGES = ("playwright", "jinja2", "axe_playwright_python")
Opening = Callable[..., AbstractContextManager[Any]]


def missing() -> str:
    """What these tests lack, if anything."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            return f"needs {package}"
    return "" if CHROMIUM.exists() else f"needs chromium; there is no {CHROMIUM}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder, and skip them where no browser can be had."""
    reason, folder = missing(), str(Path(__file__).parent) + os.sep
    for item in items:
        if str(item.path).startswith(folder):
            item.add_marker(pytest.mark.browser)
            if reason:
                item.add_marker(pytest.mark.skip(reason))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One process of chromium; each test has a profile of its own in it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Return the file of a page by its name; it is written when it is first asked for, with the result beside it."""
    folder = tmp_path_factory.mktemp("pages")

    def build(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            words = PAGES[name](folder, request)
            done = run_here(*words, "-q", "-o", path, "-o", path.with_suffix(".json"))
            assert path.exists(), done.stderr
        return path

    return build


@pytest.fixture
def opened(browser: Any, page_of: Callable[[str], Path]) -> Opening:
    """Open a page by its name, in a context with some settings; nothing may be said, fetched or asked meanwhile."""

    return opener(browser, page_of)


@pytest.fixture(scope="module")
def left_open(browser: Any, page_of: Callable[[str], Path], name: str) -> Iterator[Any]:
    """Every page in turn, opened once for all tests of a module that change nothing in it."""
    with opener(browser, page_of)(name) as page:
        yield page


@pytest.fixture
def shown(left_open: Any) -> Any:
    """The page that was left open, on the screen and in the size that `opened` gives it."""
    left_open.emulate_media(media="screen")
    left_open.set_viewport_size({"width": 1280, "height": 900})
    return left_open


def opener(browser: Any, page_of: Callable[[str], Path]) -> Opening:
    @contextmanager
    def opening(name: str, *, width: int = 1280, height: int = 900, **settings: Any) -> Iterator[Any]:
        context = browser.new_context(viewport={"width": width, "height": height}, **settings)
        page, noise = context.new_page(), []
        page.on("console", lambda message: noise.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: noise.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (noise.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: noise.append(f"request: {request.url[:100]}"))
        page.goto(page_of(name).as_uri())
        yield page
        context.close()
        fetched = [f"request: {page_of(name).as_uri()}"[:109]]
        assert [one for one in noise if not one.startswith("request: data:")] == fetched

    return opening


@pytest.fixture(scope="module", params=PAGES)
def name(request: pytest.FixtureRequest) -> str:
    """Every page in turn."""
    return str(request.param)
