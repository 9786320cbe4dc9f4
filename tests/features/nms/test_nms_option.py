"""``nms`` of an evaluation: suppression before anything is matched, in the signature and among the counts."""

import json
from pathlib import Path

import pytest
from pictures import det, evaluate, gt

from jaccard_eval import UsageError
from jaccard_eval.cli import run

TWICE = [det("dog 0 0 10 10", 0.9), det("dog 1 0 10 10", 0.8), det("cat 0 0 10 10", 0.7)]  # IoU 9/11


def test_a_second_hit_is_no_false_positive_after_suppression() -> None:
    truth = [gt("dog 0 0 10 10"), gt("dog 50 0 10 10"), gt("cat 0 0 10 10")]
    both = [*TWICE, det("dog 50 0 10 10", 0.6)]
    # Without suppression the second dog ranks third, at precision 2/3 from recall 1/2 on: 51 + 50 · 2/3 of 101 points.
    assert evaluate(truth, both)["AP50[class=dog]"] == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert evaluate(truth, both, nms=0.6)["AP50[class=dog]"] == pytest.approx(1)
    assert evaluate(truth, both, nms=9 / 11)["AP50[class=dog]"] == pytest.approx((51 + 50 * 2 / 3) / 101)


def test_suppression_is_signed_and_counted() -> None:
    result = evaluate([gt("dog 0 0 10 10")], TWICE, nms=0.6)
    assert "|nms=0.6|" in result.signature
    assert result.pred.ignored["nms"] == 1
    assert "nms" not in evaluate([gt("dog 0 0 10 10")], TWICE).signature


def test_the_command_takes_it(sample_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = [str(sample_data / "coco" / name) for name in ("gt.json", "better.json")]
    assert run.run(["evaluate", *sides, "--nms", "0.3", "--json"]) == 0
    assert "|nms=0.3|" in json.loads(capsys.readouterr().out)["signature"]


@pytest.mark.parametrize("value", [1.5, -0.1, float("nan"), "high"])
def test_an_overlap_out_of_range_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match=r"nms must be a finite number|must be between 0 and 1"):
        evaluate([gt("dog 0 0 10 10")], TWICE, nms=value)
