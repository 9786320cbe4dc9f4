import pytest

from jaccard_eval.cli import run


def test_an_unknown_way_to_match_images_is_refused_with_the_one_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["evaluate", "--match-images", "id1", "gt", "pred"]) == 2
    message = capsys.readouterr().err
    assert "'id1' is not one of id, name" in message
    assert "Did you mean 'id" in message
