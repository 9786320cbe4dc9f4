"""docs/architecture.md and its drawing are made of the code; after a change: python docs/site/architecture_page.py."""

from xml.etree import ElementTree

import architecture_page
import pytest

AGAIN = "python docs/site/architecture_page.py"


def test_the_page_and_the_drawing_are_those_of_the_code() -> None:
    assert architecture_page.PAGE.read_text("utf-8") == architecture_page.page(), AGAIN
    assert architecture_page.DRAWING.read_text("utf-8") == architecture_page.drawing(), AGAIN


def test_every_import_leads_down_and_no_room_has_two_floors() -> None:
    names = [name for names in architecture_page.floors() for name in names]
    assert len(names) == len(set(names))
    floor = {room.name: room.floor for room in architecture_page.rooms()}
    upwards = [(start, end) for start, end in architecture_page.imports() if floor[start] > floor[end]]
    assert upwards == []


def test_the_drawing_has_every_room_and_an_arrow_for_what_no_other_explains() -> None:
    tree = ElementTree.fromstring(architecture_page.drawing())
    titles = {title.text for title in tree.iter("{http://www.w3.org/2000/svg}title")}
    texts = {text.text for text in tree.iter("{http://www.w3.org/2000/svg}text")}
    assert texts == {room.name for room in architecture_page.rooms()} - set(architecture_page.FACADES)
    assert {"__main__ → cli", "metrics → matching"} <= titles
    assert "cli → data" not in titles


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": {"b", "c"}, "b": {"c"}}, {("a", "b"), ("b", "c")}),
        ({"a": {"b", "d"}, "b": {"c"}, "c": {"d"}}, {("a", "b"), ("b", "c"), ("c", "d")}),
        ({"a": {"c"}, "b": {"c"}}, {("a", "c"), ("b", "c")}),
    ],
)
def test_what_follows_from_other_arrows_is_left_away(
    graph: dict[str, set[str]], expected: set[tuple[str, str]]
) -> None:
    assert architecture_page.reduced(graph) == expected
