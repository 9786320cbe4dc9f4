"""Figures in a kernel as a notebook starts it: what a cell ends with is shown, and nothing else is called."""

import asyncio
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

LOAD = """
import jaccard_eval
result = jaccard_eval.evaluate("sample_data/coco/gt.json", "sample_data/coco/worse.json")
better = jaccard_eval.evaluate("sample_data/coco/gt.json", "sample_data/coco/better.json")
"""
FIGURES = (
    "result.plot()",
    "jaccard_eval.compare(result, better).plot()",
    "jaccard_eval.explain(result).plot()",
    "jaccard_eval.inspect('sample_data/coco/gt.json').plot()",
    "jaccard_eval.gate(result, ['AP50>=0.5']).plot()",
)
VIEWS = ("result", "jaccard_eval.compare(result, better)", "result.show_images(class_='dog', n=6)")


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
@pytest.mark.filterwarnings("ignore")  # of the packages that start kernels
def test_a_figure_shows_itself_in_a_fresh_kernel() -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in (LOAD, *FIGURES, *VIEWS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", cwd=str(ROOT))
    try:
        client.execute()
    finally:
        # Of a kernel that was started but did not answer, such as on a full disk, the client lets go only at exit.
        if client.km is not None and client.km.has_kernel:
            asyncio.run(client.km.shutdown_kernel(now=True))
    shown = [output["data"] for cell in cells[1:] for output in cell["outputs"] if output["output_type"] != "stream"]
    assert [sorted({"image/png", "text/html"} & data.keys()) for data in shown] == [
        *[["image/png"]] * len(FIGURES),
        *[["text/html"]] * len(VIEWS),
    ]
    *_, view, images = (data["text/html"] for data in shown[len(FIGURES) :])
    assert "precision-recall" in view
    assert len(re.findall("<img ", images)) == 2
