import pytest

from jaccard_eval.cli import run

GT, WORSE, BETTER = (f"sample_data/coco/{name}.json" for name in ("gt", "worse", "better"))


def test_an_unknown_way_to_match_images_is_refused_with_the_one_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["evaluate", "--match-images", "id1", "gt", "pred"]) == 2
    message = capsys.readouterr().err
    assert "'id1' is not one of id, name" in message
    assert "Did you mean 'id" in message


@pytest.mark.parametrize(
    ("argv", "start"),
    [
        (["compare", GT, WORSE, BETTER, "--moved-iou", "2"], "--moved-iou must be between 0 and 1, got 2"),
        (["compare", GT, WORSE, BETTER, "--box-iou", "0.42"], "--box-iou: IoU 0.42 is not evaluated"),
        (["evaluate", GT, WORSE, "--memory-limit", "2"], "--memory-limit must be at least 256MiB, got '2'"),
        ([GT, WORSE, "--tls-ca", "ca.pem"], "--tls-ca: for the engine dask only."),
    ],
)
def test_a_message_that_begins_with_a_keyword_names_the_option(
    argv: list[str], start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(argv) == 2
    assert capsys.readouterr().err.startswith(f"error: {start}")
