import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from two_sides import images

from jaccard_eval.data.imagekeys import AUTOMATIC, OVERLOOKED, STRATEGIES, match_by
from jaccard_eval.options import IMAGE_WAYS

WORDS = st.text("abcABC012.-_ é", min_size=1, max_size=6).filter(lambda word: word.strip(".") == word)
PATHS = st.lists(WORDS, min_size=1, max_size=3).map(lambda parts: "/".join([*parts[:-1], f"{parts[-1]}.png"]))


def _rows(strategy: str, gt: str, pred: str) -> list[int]:
    match = match_by(strategy, images(gt), images(pred))
    assert match.one_to_one
    return match.rows.tolist()


def _is_clear(strategy: str, gt: str, pred: str) -> bool:
    return match_by(strategy, images(gt), images(pred)).one_to_one


def test_equal_integers_match_by_id() -> None:
    assert _rows("id", "1 5 9", "5 9 11") == [1, 2, -1]


def test_the_number_7_and_the_text_7_are_two_ids() -> None:
    assert _rows("id", "7", "'7'") == [-1]


def test_the_number_7_and_the_text_7_are_one_id_where_that_is_asked_for() -> None:
    assert _rows("id-text", "7 8", "'8' '7'") == [0, 1]  # texts sort: '7', '8'


def test_equal_ids_are_refused_where_file_names_contradict_them() -> None:
    # Ultralytics makes the id from the stem, int("2"), while the ground truth numbers its images as it likes.
    assert not _is_clear("id", "1=2.jpg 2=1.jpg", "1=1.jpg 2=2.jpg")


def test_file_names_that_differ_in_folder_and_suffix_do_not_contradict_equal_ids() -> None:
    assert _rows("id", "1=val/a.jpg 2=val/b.jpg", "1=a.png 2=b.png") == [0, 1]


def test_ids_need_no_file_names_on_both_sides() -> None:
    assert _rows("id", "1=a.jpg 2=b.jpg", "1 2") == [0, 1]


def test_a_file_name_matches_a_key_that_is_the_same_text() -> None:
    assert _rows("name", "1=a.jpg 2=b.jpg", "b.jpg a.jpg") == [0, 1]  # keys sort: a.jpg, b.jpg


def test_windows_separators_and_a_leading_dot_do_not_matter() -> None:
    assert _rows("name", "val/a.png val/b.png", r"val\a.png ./val/b.png") == [1, 0]  # "./val" sorts first


def test_a_path_matches_its_end_whichever_side_is_longer() -> None:
    assert _rows("path", "a.png b.png", "images/a.png images/b.png") == [0, 1]
    assert _rows("path", "data/val/a.png data/val/b.png", "val/a.png b.png") == [1, 0]  # "b.png" sorts first


def test_a_path_ends_at_whole_folders_only() -> None:
    assert _rows("path", "cat.png", "at.png") == [-1]
    assert _rows("path", "left/a.png", "right/a.png") == [-1]


def test_a_full_name_wins_over_longer_names_that_end_with_it() -> None:
    assert _rows("path", "a.png left/a.png", "a.png") == [0]
    assert _rows("path", "Left/a.png a.png", "a.png") == [1]  # "Left" sorts first


def test_base_names_that_sub_folders_share_are_ambiguous() -> None:
    folders = "left/1.png right/1.png"
    assert not _is_clear("path", folders, "1.png")
    assert not _is_clear("basename", folders, "1.png")
    assert not _is_clear("stem", folders, "'1'")


def test_shared_base_names_are_clear_where_folders_tell_them_apart() -> None:
    assert _rows("path", "data/left/1.png data/right/1.png", "left/1.png right/1.png") == [0, 1]
    assert _rows("stem", "data/left/1.png data/right/1.png", "left/1 right/1") == [0, 1]


def test_shared_base_names_that_no_prediction_uses_do_not_matter() -> None:
    assert _rows("basename", "left/1.png right/1.png left/2.png", "2.png") == [1]


def test_two_predictions_that_claim_one_image_are_not_one_to_one() -> None:
    assert not _is_clear("basename", "a.png", "left/a.png right/a.png")


def test_base_names_match_across_different_folders() -> None:
    assert _rows("basename", "gt/a.png gt/b.png", "out/a.png out/b.png") == [0, 1]


def test_stems_match_without_the_suffix_of_a_picture() -> None:
    assert _rows("stem", "a.JPG b.jpeg c.tif", "a b.png c") == [0, 1, 2]
    assert _rows("stem", "a.heic b.AVIF c.mpo", "a.jpg b c.png") == [0, 1, 2]  # what a folder of pictures may hold


def test_only_the_suffix_of_a_picture_is_dropped() -> None:
    assert _rows("stem", "v1.2.png v1.3.png", "v1.2 v1.3") == [0, 1]
    assert _rows("stem", "v1.2.png", "v1") == [-1]


def test_stems_match_across_different_folders_where_they_are_unique() -> None:
    assert _rows("stem", "images/val/a.jpg images/val/b.jpg", "labels/a labels/b") == [0, 1]


def test_two_images_of_one_name_are_ambiguous_by_path_too() -> None:
    assert not _is_clear("path", "1=a.png 2=a.png", "a.png")


def test_case_and_spelling_of_spaces_are_overlooked_only_by_the_strategy_for_them() -> None:
    assert _rows("stem", "IMG_1.JPG IMG_2.JPG", "img-1 img-2") == [-1, -1]
    assert _rows("case", "IMG_1.JPG IMG_2.JPG", "img-1 img-2") == [0, 1]


def test_both_compositions_of_an_accent_are_one_name() -> None:
    assert _rows("case", "val/caf\u00e9.jpg", "cafe\u0301.jpg") == [0]


def test_names_that_only_case_tells_apart_are_ambiguous_without_it() -> None:
    assert not _is_clear("case", "a.png A.png", "a")


def test_additions_of_roboflow_are_dropped_on_either_side() -> None:
    exported = "a_jpg.rf.0123456789abcdef.jpg b_jpg.rf.fedcba9876543210.jpg"
    assert _rows("decorated", "a.jpg b.jpg", exported) == [0, 1]
    assert _rows("decorated", exported, "a b") == [0, 1]
    assert _rows("decorated", exported, "a_jpg.rf.00000000aaaaaaaa b_jpg.rf.00000000bbbbbbbb") == [0, 1]


def test_augmented_copies_of_one_picture_are_ambiguous_without_their_hash() -> None:
    assert not _is_clear("decorated", "a_jpg.rf.0123456789abcdef.jpg a_jpg.rf.fedcba9876543210.jpg", "a")


def test_the_prefix_of_label_studio_is_dropped_on_one_side() -> None:
    assert _rows("decorated", "a.jpg b.jpg", "ab12cd34-a 0f0f0f0f-b") == [1, 0]  # "0f0f0f0f-b" sorts first
    assert _rows("decorated", "data/ab12cd34-a.jpg", "labels/a") == [0]


def test_eight_digits_that_differ_are_no_prefix() -> None:
    assert _rows("decorated", "20240101-a.jpg", "20240102-a.jpg") == [-1]  # dates


def test_what_names_the_side_is_dropped_before_and_behind_a_name() -> None:
    assert _rows("affix", "00mask.png 01mask.png", "00pred.png 01pred.png") == [0, 1]
    assert _rows("affix", "ulm_0_1_gtFine_labelIds.png ulm_0_2_gtFine_labelIds.png", "ulm_0_2_leftImg8bit.png") == [1]
    assert _rows("affix", "gt_img_1.txt gt_img_10.txt", "res_img_10.txt res_img_1.txt") == [0, 1]
    assert _rows("affix", "ISIC_1_segmentation.png 21_manual1.gif 3_L.png", "ISIC_1.png 21_test.png 3.png") == [0, 1, 2]
    assert _rows("affix", "1.jpg 12.jpg", "12.jpg.predictions 1_predict") == [1, 0]
    assert _rows("affix", "target_01.png gt.png", "01_pred_mask.png") == [
        1
    ]  # "gt" sorts first, and is a name by itself
    # What belongs to the name stays: a word that goes on, and letters before it.
    assert _rows("affix", "predator_1.png unmask.png", "1.png un.png") == [-1, -1]


def test_two_files_of_a_side_for_one_image_are_ambiguous() -> None:
    assert not _is_clear("affix", "a_mask.png a_gt.png", "a_pred.png")


def test_folders_may_be_written_into_the_name() -> None:
    assert _rows("decorated", "val/left/1.jpg val/right/1.jpg", "left_1 right_1") == [0, 1]
    assert not _is_clear("stem", "val/left/1.jpg val/right/1.jpg", "'1'")


def test_padding_of_numbers_does_not_matter_where_numbers_are_compared() -> None:
    assert _rows("number", "139=000000000139.jpg 42=000000000042.jpg", "42 139") == [0, 1]
    assert _rows("number", "7.png 12.png", "'007' '0012'") == [0, 1]  # "0012" sorts first, and so does "12.png"


def test_the_number_of_an_image_is_that_of_its_file_name_not_its_id() -> None:
    assert _rows("number", "1=002.jpg 2=001.jpg", "1 2") == [1, 0]
    assert _rows("number", "1=a.jpg 2=b.jpg", "1 2") == [-1, -1]


def test_numbers_are_compared_only_where_every_prediction_image_is_called_by_one() -> None:
    assert _rows("number", "001.jpg 002.jpg", "1 b") == [-1, -1]


def test_one_number_in_two_paddings_is_ambiguous() -> None:
    assert not _is_clear("number", "1.jpg 001.jpg", "01")


def test_the_next_id_is_that_of_the_prediction_plus_one() -> None:
    assert _rows("id+1", "1 2 3", "0 1 2") == [0, 1, 2]
    assert _rows("id-1", "0 1 2", "1 2 3") == [0, 1, 2]
    assert _rows("id+1", "1=x.jpg 2=y.jpg", "'000' '001' z") == [0, 1, -1]


@given(st.sets(PATHS, min_size=1, max_size=8))
def test_every_strategy_that_compares_whole_paths_matches_names_with_themselves(names: set[str]) -> None:
    table = _table_of(names)
    for strategy in ("id", "id-text", "name", "path"):
        match = match_by(strategy, table, table)
        assert match.one_to_one
        assert match.rows.tolist() == list(range(len(names)))


@given(st.sets(PATHS, min_size=1, max_size=8))
def test_paths_match_below_any_folder(names: set[str]) -> None:
    ours = _table_of(names)
    theirs = _table_of({f"far/away/{name}" for name in names})
    match = match_by("path", ours, theirs)
    matched = {theirs.keys[i]: ours.keys[row] for i, row in enumerate(match.rows) if row >= 0}
    assert match.one_to_one
    assert matched == {f"far/away/{name}": name for name in names}


NUMBERS = st.sets(st.integers(0, 20) | st.integers(0, 10**12))


@given(NUMBERS, NUMBERS, st.sampled_from(AUTOMATIC))
def test_numbers_match_in_every_way_as_their_texts_do(ours: set[int], theirs: set[int], strategy: str) -> None:
    gt, pred = _table_of(ours), _table_of(theirs)
    match = match_by(strategy, gt, pred)
    rows, is_clear = STRATEGIES[strategy](gt, pred)
    expected = [gt.keys.index(key) if key in ours else -1 for key in pred.keys]
    assert match.rows.tolist() == rows.tolist() == expected
    assert match.one_to_one == is_clear


@given(st.sets(PATHS, min_size=1, max_size=6), st.sets(PATHS, min_size=1, max_size=6))
def test_a_clear_match_claims_no_image_twice(ours: set[str], theirs: set[str]) -> None:
    for strategy in STRATEGIES:
        match = match_by(strategy, _table_of(ours), _table_of(theirs))
        claimed = match.rows[match.rows >= 0]
        assert len(match.rows) == len(theirs)
        assert not match.one_to_one or len(np.unique(claimed)) == len(claimed)


def _table_of(names: set[str] | set[int]):
    from jaccard_eval.data.dataset import ImageTable, unknown_sizes

    return ImageTable(tuple(sorted(names)), (None,) * len(names), unknown_sizes(len(names)), listed=True)


def test_ways_and_what_they_overlook_are_strategies() -> None:
    assert {*AUTOMATIC, *IMAGE_WAYS, *OVERLOOKED} <= STRATEGIES.keys()
