"""Classes that have nothing cost next to nothing."""

from jaccard_eval import evaluate


def test_classes_without_objects_and_predictions_share_their_values() -> None:
    gt = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 100, "height": 100}],
        "categories": [{"id": k, "name": f"c{k}"} for k in range(50)],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0}],
    }
    box = {"image_id": 1, "bbox": [0, 0, 10, 10]}
    pred = [{**box, "category_id": 1, "score": 0.9}, {**box, "category_id": 2, "score": 0.8}]
    rows = evaluate(gt, pred).per_class
    # Class 1 has an object. The other 49 are alike, that with a detection, too: without objects there is no AP.
    assert len({id(row.values) for row in rows}) == len({id(row.sizes) for row in rows}) == 2
    assert {row.values["AP"].reason for row in rows} == {None, "no ground truth"}
    assert [row.pred for row in rows[:4]] == [0, 1, 1, 0]
