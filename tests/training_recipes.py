"""The recipes of docs/training-loop.md, by the title of their section."""

import re

from test_readme import FRAMEWORKS, ROOT, read_blocks

PAGE = "docs/training-loop.md"
SECTIONS = dict(
    re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", (ROOT / PAGE).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
)
RECIPES = {
    title: block.text
    for title, text in SECTIONS.items()
    for block in read_blocks(text, PAGE)
    if FRAMEWORKS.search(block.text)
}
# By tests/frameworks, where they are installed.
TESTED = {
    "Ultralytics",
    "Lightning",
    "MMDetection",
    "Hugging Face Trainer",
    "Weights & Biases",
    "MLflow",
    "TensorBoard",
}
