import pytest
from two_sides import classes

from jaccard_eval.data.alignment import match_classes
from jaccard_eval.data.dataset import LabelMap
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding, FindingLog, Where


def _match(gt: LabelMap, pred: LabelMap, **class_map: str) -> tuple[str, list[int], tuple[Finding, ...]]:
    log = FindingLog()
    match = match_classes(gt, pred, class_map, Where("pred.json"), log)
    return match.strategy, match.rows.tolist(), log.findings()


def test_classes_match_by_name_whatever_their_ids() -> None:
    assert _match(classes("1=dog 2=cat"), classes("0=cat 1=dog 2=zebra")) == ("name", [1, 0, -1], ())


def test_classes_match_by_id_where_one_side_only_numbers_them() -> None:
    assert _match(classes("1=dog 3=cat"), classes("1 2 3", named=False)) == ("id", [0, -1, 1], ())


def test_a_text_in_the_place_of_an_id_may_be_the_name() -> None:
    assert _match(classes("1=dog 3=cat"), classes("cat bird", named=False)) == ("id", [1, -1], ())


def test_the_number_3_is_not_taken_for_a_class_that_is_called_3() -> None:
    assert _match(classes("1=3"), classes("3", named=False)) == ("id", [-1], ())


@pytest.mark.parametrize("spelling", ["Traffic Light", "traffic_light", "traffic-light", "TRAFFICLIGHT"])
def test_a_name_that_differs_in_case_or_spacing_is_taken_with_a_warning(spelling: str) -> None:
    theirs = LabelMap((0, 1), (spelling, "dog"), named=True)
    ours = LabelMap((1, 2), ("dog", "traffic light"), named=True)
    strategy, rows, (warning,) = _match(ours, theirs)
    assert (strategy, rows, warning.code) == ("name", [1, 0], "class-spelling")
    assert f"class '{spelling}' is matched with 'traffic light': only case or spacing differs" in warning.message
    assert "--class-map" in warning.message


def test_an_exact_name_wins_over_one_that_differs_in_case() -> None:
    assert _match(classes("1=Dog 2=dog"), classes("0=dog")) == ("name", [1], ())


def test_of_two_spellings_only_one_is_taken_for_a_class() -> None:
    _, rows, findings = _match(classes("1=dog"), classes("0=Dog 1=DOG"))
    assert rows == [0, -1]
    assert len(findings) == 1


def test_a_spelling_is_not_taken_for_a_class_that_has_its_exact_name() -> None:
    assert _match(classes("1=dog"), classes("0=dog 1=Dog")) == ("name", [0, -1], ())


def test_of_classes_that_share_a_name_the_one_with_the_same_id_is_meant() -> None:
    twice = classes("1=cat 2=cat 3=dog")
    assert _match(twice, classes("1=cat 2=cat")) == ("name", [0, 1], ())


def test_of_classes_that_share_a_name_the_first_is_meant_where_no_id_tells() -> None:
    assert _match(classes("1=cat 2=cat"), classes("7=cat")) == ("name", [0], ())


def test_a_map_decides_by_name_or_id_and_leaves_the_rest_as_it_is() -> None:
    ours, theirs = classes("1=dog 2=cat 3=bird"), classes("0=hound 1=kitty 2=bird 3=fish")
    assert _match(ours, theirs, hound="dog", **{"1": "2"}) == ("map", [0, 1, 2, -1], ())


def test_a_map_may_bring_several_classes_together() -> None:
    assert _match(classes("1=vehicle"), classes("0=car 1=bus"), car="vehicle", bus="vehicle") == ("map", [0, 0], ())


def test_a_map_that_names_an_unknown_class_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"no class 'hond' in the predictions; it has 0, hound\. Did you mean 'hound'"):
        _match(classes("1=dog"), classes("0=hound"), hond="dog")
    with pytest.raises(UsageError, match=r"no class 'dgo' in the ground truth; it has 1, dog\. Did you mean 'dog'"):
        _match(classes("1=dog"), classes("0=hound"), hound="dgo")


def test_a_map_of_numbers_may_be_the_whole_list_of_a_detector() -> None:
    # Numbers 1 to 4 are known to the detector; 2 and 3 were found, and no object is a fox.
    ours, found = classes("1=dog 2=horse 3=cart"), classes("2=2 3=3")
    whole = {"1": "dog", "2": "horse", "3": "fox", "4": "zebra"}
    assert _match(ours, found, **whole)[:2] == ("map", [1, -1])
    for wrong, told in (({"3": "crat"}, "Did you mean 'cart'"), ({"fox": "dog"}, "no class 'fox' in the predictions")):
        with pytest.raises(UsageError, match=told):
            _match(ours, found, **whole | wrong)
    with pytest.raises(UsageError, match="no class 'fox' in the ground truth"):
        _match(ours, found, **{"2": "fox", "3": "zebra"})


def test_numbers_are_places_in_the_order_in_which_the_other_side_lists_its_classes() -> None:
    names = ("apple", "mango", "zebra")
    listed = LabelMap(names, names, named=True, order=(2, -1, 0, 1))  # zebra, one without boxes, apple, mango
    numbered = classes("0 2 3", named=False)
    strategy, rows, (note,) = _match(listed, numbered)
    assert (strategy, rows, note.code) == ("id", [2, 0, 1], "names-found")
    assert "read in the order in which the ground truth lists its classes" in note.message
    assert _match(listed, classes("0 1", named=False))[:2] == ("id", [2, -1])
    strategy, rows, (note,) = _match(numbered, listed)
    assert (strategy, rows) == ("id", [1, 2, 0])
    assert "read in the order in which the predictions list their classes" in note.message
    # A number without a place, and an order that nobody lists.
    assert _match(listed, classes("1 4", named=False)) == ("id", [-1, -1], ())
    assert _match(LabelMap(names, names, named=True), numbered) == ("id", [-1, -1, -1], ())
