import numpy as np
import pytest
from two_sides import gt, images, pred

from jaccard_eval.data.alignment import CommonImages, align_images
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Finding, FindingLog, Severity
from jaccard_eval.options import SideOptions


def _align(ours: Dataset, theirs: Dataset, **options: str) -> tuple[CommonImages, tuple[Finding, ...]]:
    log = FindingLog()
    common = align_images(ours, theirs, SideOptions(**options), log)  # type: ignore[arg-type]
    return common, log.findings()


def _names(common: CommonImages) -> list[str]:
    return [common.table.name(row) for row in range(len(common.table))]


def _error(ours: Dataset, theirs: Dataset, **options: str) -> str:
    with pytest.raises(DataError) as caught:
        _align(ours, theirs, **options)
    return str(caught.value)


def _on(listing: str, **options: object) -> list[str]:
    """One dog on each image."""
    return [f"{image} dog 0 0 9 9" for image in listing.split()]


def _numbered(n: int, suffix: str = "") -> str:
    return " ".join(f"img{i:02d}{suffix}" for i in range(n))


@pytest.mark.parametrize(
    ("strategy", "ours", "theirs"),
    [
        ("id", "1=a.png 2=b.png", "1 2"),
        ("name", "1=a.png 2=b.png", "a.png b.png"),
        ("path", "1=val/a.png 2=val/b.png", "a.png b.png"),
        ("basename", "1=val/a.png 2=val/b.png", "out/a.png out/b.png"),
        ("stem", "1=val/a.png 2=val/b.png", "a b"),
        ("stem", "1=1.png 2=2.png", "'1' '2'"),
    ],
)
def test_the_first_strategy_that_explains_the_predictions_is_taken(strategy: str, ours: str, theirs: str) -> None:
    common, findings = _align(gt([], images=images(ours)), pred(_on(theirs)))
    assert common.strategy == strategy
    assert common.pred_rows.tolist() == [0, 1]
    assert findings == ()


@pytest.mark.parametrize("strategy", ["id", "name", "path", "basename", "stem"])
def test_a_strategy_can_be_forced(strategy: str) -> None:
    common, _ = _align(gt(_on("a.png b.png")), pred(_on("a.png b.png")), match_images=strategy)
    assert (common.strategy, common.pred_rows.tolist()) == (strategy, [0, 1])


@pytest.mark.parametrize(
    ("strategy", "ours", "theirs", "overlooked"),
    [
        ("case", "1=A.PNG 2=B.PNG", "a.png b.png", "case, Unicode composition"),
        ("affix", "1=gt_img_1.png 2=gt_img_10.png", "res_img_10.png res_img_1.png", "what names the side"),
        ("decorated", "1=val/a.png 2=val/b.png", "ab12cd34-a.png cd34ab12-b.png", "what Roboflow, Label Studio"),
        ("number", "7=0001.png 9=0002.png", "1 2", "leading zeros"),
    ],
)
def test_a_strategy_that_overlooks_something_is_taken_last_and_said(
    strategy: str, ours: str, theirs: str, overlooked: str
) -> None:
    common, (note,) = _align(gt([], images=images(ours)), pred(_on(theirs)))
    assert (common.strategy, common.pred_rows.tolist()) == (strategy, [0, 1])
    assert (note.severity, note.code) == (Severity.NOTE, "image-names-adapted")
    assert f"by {strategy}" in note.message
    assert overlooked in note.message
    assert "matches" in note.message


def test_what_was_asked_for_is_not_said_to_be_adapted() -> None:
    common, findings = _align(gt([], images=images("1=A.PNG")), pred(_on("a.png")), match_images="case")
    assert (common.strategy, findings) == ("case", ())


def test_ids_off_by_one_are_matched_only_where_that_is_asked_for() -> None:
    ours, theirs = gt(_on("1 2 3")), pred(_on("0 1 2"))
    assert "1 predictions on 1 image not in the ground truth gt.file: '0'" in _error(ours, theirs)
    common, _ = _align(ours, theirs, match_images="id+1")
    assert (common.strategy, common.pred_rows.tolist()) == ("id+1", [0, 1, 2])


def test_forcing_the_id_takes_numbers_and_their_text_for_one() -> None:
    ours, theirs = gt([], images=images("'2299'=002299.jpg")), pred(_on("2299"))
    assert "string ids" in _error(ours, theirs)
    common, _ = _align(ours, theirs, match_images="id")
    assert common.pred_rows.tolist() == [0]


def test_a_number_made_of_the_stem_is_not_taken_for_the_id() -> None:
    # Image 1 is the file 2.jpg; the predictions name 1.jpg image 1 because its stem is 1.
    ours = gt([], images=images("1=2.jpg 2=1.jpg"))
    theirs = pred(_on("1 2"), images=images("1=1.jpg 2=2.jpg"))
    common, _ = _align(ours, theirs)
    assert common.strategy == "name"
    assert common.pred_rows.tolist() == [1, 0]


def test_ids_that_file_names_contradict_are_no_last_resort() -> None:
    ours = gt([], images=images("1=a.jpg 2=b.jpg"))
    message = _error(ours, pred(_on("1 2"), images=images("1=c.jpg 2=d.jpg")))
    assert "2 of 2 prediction images match" in message
    assert "by id, but the file names of equal ids differ" in message


def test_a_strategy_that_explains_all_wins_over_equal_ids_that_explain_some() -> None:
    # Of the numbers 1 and 2 only 2 is also an id of the ground truth, but both are stems.
    common, findings = _align(gt([], images=images("2=1.jpg 3=2.jpg")), pred(_on("1 2")))
    assert common.strategy == "stem"
    assert common.pred_rows.tolist() == [0, 1]
    assert findings == ()


def test_prediction_images_without_boxes_need_no_match() -> None:
    common, findings = _align(gt(_on("a.png")), pred(_on("a.png"), images=images("a.png b.png c.png")))
    assert common.pred_rows.tolist() == [0, -1, -1]
    assert findings == ()


def test_predictions_without_any_box_match_what_they_can() -> None:
    common, findings = _align(gt(_on("a.png b.png")), pred([], images=images("a c")))
    assert _names(common) == ["a.png", "b.png"]
    assert findings == ()


def test_a_strategy_is_believed_from_19_of_20_images_on() -> None:
    ours = gt([], images=images(_numbered(19, ".png")))
    common, findings = _align(ours, pred(_on(_numbered(20))), extra_images="ignore")  # 19 / 20 = 95 %
    assert common.strategy == "stem"
    assert [finding.code for finding in findings] == ["image-extra"]
    message = _error(ours, pred(_on(_numbered(21))), extra_images="ignore")  # 19 / 21 = 90 %
    assert "19 of 21 prediction images match a ground-truth image of gt.file by stem" in message


def test_nothing_in_common_shows_examples_of_both_sides_and_how_to_go_on() -> None:
    message = _error(gt([], images=images("1=a.png 2=b.png")), pred(_on("x.png y.png")))
    assert message == (
        "error[image-unknown]: pred.file: image: 0 of 2 prediction images match a ground-truth image of gt.file; "
        "prediction image ids are 'x.png', 'y.png' (string ids), those of the ground truth '1 (a.png)', '2 (b.png)' "
        "(integer ids). Check that both are of the same split. To choose how images match, "
        "pass --match-images id|name|path|basename|stem|case|decorated|number|affix|id+1|id-1; "
        "to drop the rest, --extra-images ignore."
    )


def test_images_that_share_a_base_name_are_said_to_be_ambiguous() -> None:
    ours = gt(_on("left/1.png right/1.png"))
    assert "not one to one" in _error(ours, pred(_on("1.png")))
    message = _error(ours, pred(_on("1.png")), match_images="basename")
    assert "several images of one side share one basename" in message


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"choose from id, name, path, basename, stem, case, .*Did you mean 'stem'"):
        _align(gt([]), pred([]), match_images="stems")


def test_an_unknown_way_with_extra_images_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"extra images: 'ignored'; choose from error, ignore, empty\. Did you mean 'ignore'"
    ):
        _align(gt(_on("a.png")), pred(_on("a.png")), extra_images="ignored")


def test_predictions_on_unknown_images_are_an_error_where_all_images_are_listed() -> None:
    message = _error(gt(_on("1 2")), pred(_on("1 3 4")))
    assert "pred.file: image: 2 predictions on 2 images not in the ground truth gt.file" in message
    assert "'3', '4'" in message
    assert "--extra-images ignore" in message


def test_extra_images_can_be_left_out() -> None:
    common, (warning,) = _align(gt(_on("1 2")), pred(_on("1 3")), extra_images="ignore")
    assert common.pred_rows.tolist() == [0, -1]
    assert _names(common) == ["1", "2"]
    assert (warning.severity, warning.code) == (Severity.WARNING, "image-extra")
    assert "1 predictions on 1 image" in warning.message
    assert warning.message.endswith("('3'): ignored")


def test_extra_images_can_count_as_images_without_objects() -> None:
    ours = gt([], images=images("1 5", sizes={1: (10, 10), 5: (50, 50)}))
    theirs = pred(_on("3 5"), images=images("3 5", sizes={3: (30, 30)}))
    common, (warning,) = _align(ours, theirs, extra_images="empty")
    assert _names(common) == ["1", "3", "5"]  # in the order of keys, as if the ground truth had named it
    assert common.gt_rows.tolist() == [0, 2]
    assert common.pred_rows.tolist() == [1, 2]
    assert common.table.sizes[:, 0].tolist() == [10, 30, 50]
    assert warning.message.endswith("('3'): counted as images without objects")


def test_ground_truth_that_lists_only_images_with_boxes_may_lack_one_whose_key_is_alike() -> None:
    ours = gt([], images=images("a.png b.png", listed=False))
    common, (warning,) = _align(ours, pred(_on("a.png c.png")))
    assert _names(common) == ["a.png", "b.png", "c.png"]
    assert warning.severity == Severity.WARNING
    assert "counted as images without objects, as the ground truth does not list its images" in warning.message


def test_an_extra_image_that_only_looks_different_is_an_error_that_names_its_match() -> None:
    ours = gt([], images=images("a.png b.png", listed=False))
    message = _error(ours, pred(_on("a.png c.png val/b.png")))
    assert "2 predictions on 2 images not in the ground truth gt.file" in message
    assert "'val/b.png' would match 'b.png' by path" in message


def test_images_without_boxes_that_nothing_matches_stay_without_a_row() -> None:
    theirs = pred(_on("1 3"), images=images("1 3 7"))
    common, _ = _align(gt(_on("1 2")), theirs, extra_images="empty")
    assert common.pred_rows.tolist() == [0, 2, -1]
    assert _names(common) == ["1", "2", "3"]


@pytest.mark.parametrize(
    "theirs", ["images/a.png images/b.png images/c.png", "a b c", r"val\a.png val\b.png val\c.png"]
)
def test_ground_truth_that_lists_only_images_with_boxes_lacks_none_whose_keys_differ(theirs: str) -> None:
    ours = gt([], images=images("a.png b.png", listed=False))
    message = _error(ours, pred(_on(theirs)))
    assert "2 of 3 prediction images match" in message
    assert "c" in message


def test_rows_of_the_tables_are_32_bit_integers() -> None:
    common, _ = _align(gt(_on("1 2")), pred(_on("2 3")), extra_images="empty")
    assert common.gt_rows.dtype == common.pred_rows.dtype == np.int32
