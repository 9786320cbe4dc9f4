"""Labels of boxes: near their boxes, within the image, and none on another."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jaccard_eval.report.outputs.annotated import place_labels

sides = st.integers(0, 300)
boxes = st.lists(st.tuples(sides, sides, sides, sides), max_size=25)


@settings(deadline=None)
@given(boxes, st.integers(5, 90), st.integers(5, 30))
def test_no_label_covers_another_or_leaves_the_image(corners: list[tuple[int, ...]], width: int, height: int) -> None:
    drawn = [(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in corners]
    places = [place for place in place_labels(drawn, [(width, height)] * len(drawn), (200, 150)) if place is not None]
    for i, (left, top, right, bottom) in enumerate(places):
        assert 0 <= left < right <= 200
        assert 0 <= top < bottom <= 150
        assert (right - left, bottom - top) == (width, height)
        for other in places[:i]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def test_a_label_stands_on_its_box_where_there_is_room() -> None:
    assert place_labels([(20, 50, 80, 90)], [(30, 10)], (200, 150)) == [(20, 40, 50, 50)]


def test_at_the_upper_edge_it_stands_below() -> None:
    [place] = place_labels([(20, 0, 80, 90)], [(30, 10)], (200, 150))
    assert place == (20, 0, 50, 10)  # moved down into the box, which is nearest to where it would be


def test_equal_boxes_have_their_labels_apart() -> None:
    places = place_labels([(20, 50, 80, 90)] * 4, [(30, 10)] * 4, (200, 150))
    assert len({*places}) == 4
    assert None not in places


def test_what_is_wider_than_the_image_has_no_place() -> None:
    assert place_labels([(0, 0, 9, 9)], [(300, 10)], (200, 150)) == [None]


def test_where_there_is_no_room_a_label_is_missing() -> None:
    places = place_labels([(0, 0, 40, 20)] * 9, [(40, 10)] * 9, (40, 20))
    assert sum(place is not None for place in places) == 2
