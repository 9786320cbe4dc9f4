"""Figures in a kernel as a notebook starts it: what a cell ends with is shown, and nothing else is called."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

LOAD = """
import jaccard_eval
result = jaccard_eval.evaluate("sample_data/coco/gt.json", "sample_data/coco/worse.json")
"""


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
@pytest.mark.filterwarnings("ignore")  # of the packages that start kernels
def test_a_figure_shows_itself_in_a_fresh_kernel() -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in (LOAD, "result.plot()", "result")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", cwd=str(ROOT)).execute()
    shown = [output["data"] for cell in cells[1:] for output in cell["outputs"] if output["output_type"] != "stream"]
    assert [sorted({"image/png", "text/html"} & data.keys()) for data in shown] == [["image/png"], ["text/html"]]
