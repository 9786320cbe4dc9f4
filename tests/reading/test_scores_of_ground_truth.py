"""Ground truth that has scores is mentioned in every format: it may be predictions."""

from pathlib import Path

import pytest

from jaccard_eval import ReadOptions, load

SAMPLE = Path(__file__).parents[2] / "sample_data"
KITTI = "Car 0.00 0 -1.57 100 150 200 250 1.5 1.6 3.7 1 2 10 -1.5 0.9\n"
WRITTEN = {
    "kitti": ("a.txt", KITTI),
    "csv": ("boxes.csv", "image,class,x1,y1,x2,y2,score\na.jpg,car,1,1,50,50,0.9\n"),
    "torchvision": ("boxes.json", '[{"image_id": 1, "boxes": [[1, 1, 9, 9]], "labels": [1], "scores": [0.9]}]'),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_scores_of_ground_truth_are_mentioned(name: str, tmp_path: Path) -> None:
    file, text = WRITTEN[name]
    (tmp_path / "side").mkdir()
    path = tmp_path / "side" / file
    path.write_text(text)
    where = path if path.suffix in {".csv", ".json"} else path.parent
    read = load(where, options=ReadOptions(role="gt"), format_name=name)
    assert [one.code for one in read.findings if one.code == "gt-scores"] == ["gt-scores"]


def test_ground_truth_without_scores_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(KITTI.replace(" 0.9", ""))
    assert "gt-scores" not in [
        one.code for one in load(tmp_path, options=ReadOptions(role="gt"), format_name="kitti").findings
    ]
