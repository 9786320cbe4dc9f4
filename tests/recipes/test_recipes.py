"""Recipes of docs/training-loop.md: each runs in its framework in tests/frameworks, or here in a stand-in of it."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import stand_ins
from recipe_scene import AP, CLASSES, SCENE, UNTRAINED, coco_document
from stand_ins import on_ranks
from test_readme import FRAMEWORKS, ROOT, read_blocks
from training_recipes import PAGE, RECIPES, TESTED


@pytest.mark.parametrize("world", [1, 2])
def test_detectron2_evaluates_against_its_registered_json(
    world: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "val.json"
    path.write_text(json.dumps(coco_document(category_ids=[17, 3])))
    metadata = SimpleNamespace(thing_classes=CLASSES, json_file=str(path))
    modules = stand_ins.modules(
        detectron2__data={"MetadataCatalog": {"my_val": metadata}},
        detectron2__evaluation={name: getattr(stand_ins, name) for name in stand_ins.EVALUATION},
        detectron2__utils__comm={"gather": stand_ins.gather, "is_main_process": lambda: stand_ins.here().rank == 0},
    )
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)

    def evaluate(rank: int) -> Any:
        names: dict[str, Any] = {"__name__": "page"}
        exec(RECIPES["detectron2"], names)
        for images in (UNTRAINED, SCENE):
            shares = [[images[:2], images[2:]]] if world == 1 else [[images[:1]], [images[1:2], images[2:]]]
            answer = stand_ins.inference_on_dataset(shares[rank], names["evaluator"])
        return answer, names["attached"].result

    (first, result), *others = on_ranks(world, evaluate)
    assert first["jaccard"]["AP"] == result["AP"] == pytest.approx(AP)
    assert first["jaccard"]["AP/dog"] == pytest.approx(0.05)
    assert all(other == ({}, None) for other in others)


def test_every_recipe_of_the_page_is_run() -> None:
    assert set(RECIPES) == {*TESTED, "detectron2"}
    # Blocks that need a framework, and are in no section, would be run nowhere.
    page = read_blocks((ROOT / PAGE).read_text(encoding="utf-8"), PAGE)
    assert len([block for block in page if FRAMEWORKS.search(block.text)]) == len(RECIPES)
