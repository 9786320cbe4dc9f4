"""Masks, boundaries, keypoints and oriented boxes: generated and hand-made cases, published numbers of real sets."""

from __future__ import annotations

import json
import tarfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import adapter
import numpy as np
import pytest
from exact import decode, minus_one, same_bits
from overruled import OF_SHAPES, OVERRULED, overruled

import jaccard_eval
from jaccard_eval.metrics.detection import summary_refs

SHARED = Path(__file__).parents[3] / "shared"
GOLDEN = SHARED / "oracle" / "golden_ext"
N_CASES = {"segm": 40, "boundary": 30, "keypoints": 40, "crowdpose": 20}
TOLERANCE = {
    "segm": 0.0,
    "boundary": 0.0,
    "keypoints": 1e-12,
    "crowdpose": 1e-12,
}  # exp differs by a bit from one machine to another
CROWDPOSE = "crowdpose"
SETS = "faster-coco-eval/tests"
COCO_API, MMPOSE = f"{SETS}/dataset/cocoapi", "mmpose"
RESULTS = "cocoapi/results/instances_val2014_fakesegm100_results.json"
POSES = f"{SETS}/keypoints_dataset"
REAL: dict[tuple[str, str, str], dict[str, float]] = {
    ("segm", f"{COCO_API}/instances_val2014_100.json", RESULTS): {
        "AP": 0.3195452758576433, "AP50": 0.5622883972521636, "AP75": 0.29892653412086784,
        "AP_small": 0.3873740315997837, "AP_medium": 0.31018272403369485, "AP_large": 0.3269339071005138,
        "AR1": 0.2682297225711534, "AR10": 0.41544868114906375, "AR100": 0.4168394992198818,
    },
    ("boundary", f"{SETS}/dataset/gt_dataset.json", f"{SETS}/dataset/dt_dataset.json"): {"AP": 0.6947194719471946},
    ("keypoints", f"{POSES}/gt_dataset.json", f"{POSES}/dt_dataset.json"): {
        "AP": 0.5048844884488449, "AP50": 0.7227722772277227, "AP75": 0.6336633663366337,
        "AP_medium": 0.46633663366336636, "AP_large": 0.7504950495049505,
        "AR": 0.5181818181818182, "AR[iou=0.5]": 0.7272727272727273, "AR[iou=0.75]": 0.6363636363636364,
    },
    ("keypoints", f"{MMPOSE}/tests/data/coco/test_coco.json", f"{MMPOSE}/derived_keypoint_dets.json"): {
        "AP": 0.716439461037558,
    },
    (CROWDPOSE, f"{SETS}/dataset/example_crowdpose_val.json", f"{SETS}/dataset/example_crowdpose_preds.json"): {
        "AP": 0.7877215935879303, "AP50": 0.9881188118811886, "AP75": 0.7314356435643564,
        "AR": 0.8222222222222223, "AR[iou=0.5]": 1.0, "AR[iou=0.75]": 0.7777777777777778,
    },
}  # fmt: skip


def evaluated(gt: Path, dt: Path, kind: str) -> jaccard_eval.EvaluationResult:
    if kind != CROWDPOSE:
        return jaccard_eval.evaluate(gt, dt, iou_type=kind)
    # The arrays of its tool have ranges that the summary does not show.
    areas = jaccard_eval.get_protocol("coco").comparing("keypoints").areas
    return jaccard_eval.evaluate(gt, dt, protocol=kind, areas=areas)


def stats(result: jaccard_eval.EvaluationResult) -> Any:
    refs = [ref for ref in summary_refs(result.protocol) if result.protocol.name == "coco" or ref.area is None]
    refs.sort(key=lambda ref: ref.subset is not None)  # CrowdPose's tool has its three subsets last
    return minus_one(np.array([result.metrics[str(ref)].value for ref in refs]))


def arrays(result: jaccard_eval.EvaluationResult) -> dict[str, Any]:
    """Return the arrays of an evaluation by size, without subsets, which stand behind the sizes."""
    sizes = slice(len(result.protocol.areas))
    return {name: found[..., sizes, :] for name, found in adapter.arrays(result).items()}


@pytest.mark.parametrize("kind", N_CASES)
def test_generated_cases_agree(kind: str, shared_oracle: Path, tmp_path: Path) -> None:
    with tarfile.open(shared_oracle / "cases_ext.tar.xz") as archive:
        members = [one for one in archive if one.name.startswith(f"cases_ext/{kind}/")]
        archive.extractall(tmp_path, members, filter="data")
    folders = [path.parent for path in sorted(tmp_path.glob(f"cases_ext/{kind}/*/expected.json"))]
    assert len(folders) == N_CASES[kind]
    wrong = []
    for folder in folders:
        expected = json.loads((folder / "expected.json").read_bytes())
        result = evaluated(folder / "gt.json", folder / "dt.json", kind)
        pairs = [(found, decode(expected["arrays"][name])) for name, found in arrays(result).items()]
        # What is undefined is null or -1 there, and CrowdPose's tool rounds the values of its subsets.
        wanted = np.array([-1.0 if value is None else value for value in expected["stats"]])
        found = stats(result)
        pairs += [(found[:6], wanted[:6]), (found[6:].round(4), wanted[6:])] if kind == CROWDPOSE else [(found, wanted)]
        if not all(same_bits(found, want) or _near(found, want, TOLERANCE[kind]) for found, want in pairs):
            wrong.append(folder.name)
    assert wrong == []


def _near(found: Any, expected: Any, tolerance: float) -> bool:
    return bool(np.shape(found) == np.shape(expected) and (np.abs(found - expected) <= tolerance).all())


def cases() -> list[Any]:
    found = [json.loads(path.read_bytes()) for path in sorted(GOLDEN.glob("*.json"))]
    kinds = {f"coco_{kind}": kind for kind in N_CASES}
    return [
        pytest.param(kinds[case["protocol"]], case, id=f"{case['protocol']}-{case['name']}")
        for case in found
        if case["protocol"] in kinds and "strict_only" not in case["tags"] and not case.get("strict_only")
    ]


@pytest.mark.parametrize(("kind", "case"), cases())
def test_values_are_those_derived_by_hand(kind: str, case: dict[str, Any], tmp_path: Path) -> None:
    for name in ("gt", "dt"):
        (tmp_path / f"{name}.json").write_text(json.dumps(case[name]))
    result = evaluated(tmp_path / "gt.json", tmp_path / "dt.json", kind)
    named = dict(zip(case["oracle"]["stats_names"], stats(result), strict=True))
    for name, text in case["expect"].items():
        if name in named:
            assert named[name] == pytest.approx(float(Fraction(text)), abs=1e-12), name
    for name, found in arrays(result).items():
        expected = decode(case["oracle"]["arrays"][name])
        assert same_bits(found, expected) or _near(found, expected, TOLERANCE[kind]), name


@pytest.mark.parametrize(
    ("asked", "published"), REAL.items(), ids=lambda item: item[0] if isinstance(item, tuple) else ""
)
def test_published_numbers_are_reproduced(asked: tuple[str, str, str], published: dict[str, float]) -> None:
    kind, gt, dt = asked
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("needs the folder shared/data beside the checkout")
    result = evaluated(data / gt, data / dt, kind)
    assert {name: result[name] for name in published} == pytest.approx(published, abs=1e-12)


N_ORIENTED = 40
AP_FORMS = {"dota": ("map07", "ap07"), "dota-area": ("map12", "ap12")}


def as_coco(gt: dict[str, Any], dt: list[dict[str, Any]], folder: Path) -> tuple[Path, Path]:
    """Write ground truth and detections as COCO JSON with eight numbers in bbox."""
    images, classes = ({name: row + 1 for row, name in enumerate(gt[kind])} for kind in ("images", "classes"))
    keys = ({"image_id": images[one["image"]], "category_id": classes[one["class"]]} for one in (*gt["objects"], *dt))
    records = [{**key, "bbox": one["poly"]} for key, one in zip(keys, (*gt["objects"], *dt), strict=True)]
    truth = {
        "images": [{"id": row, "file_name": f"{name}.png"} for name, row in images.items()],
        "categories": [{"id": row, "name": name} for name, row in classes.items()],
        "annotations": [{"id": row + 1, **record} for row, record in enumerate(records[: len(gt["objects"])])],
    }
    scored = zip(records[len(gt["objects"]) :], dt, strict=True)
    results = [{**record, "score": one["score"]} for record, one in scored]
    for name, document in (("gt", truth), ("dt", results)):
        (folder / f"{name}_coco.json").write_text(json.dumps(document))
    return folder / "gt_coco.json", folder / "dt_coco.json"


def as_dota(gt: dict[str, Any], dt: list[dict[str, Any]], folder: Path) -> tuple[Path, Path]:
    """Write ground truth and detections as DOTA's text files."""
    labels: dict[str, list[str]] = {image: [] for image in gt["images"]}
    results: dict[str, list[str]] = {name: [] for name in gt["classes"]}
    for one in gt["objects"]:
        labels[one["image"]].append(f"{' '.join(map(repr, one['poly']))} {one['class']} {one['difficult']}")
    for one in dt:
        results[one["class"]].append(f"{one['image']} {one['score']!r} {' '.join(map(repr, one['poly']))}")
    for name, files in (("labelTxt", labels), ("results", {f"Task1_{name}": rows for name, rows in results.items()})):
        (folder / name).mkdir()
        for stem, rows in files.items():
            (folder / name / f"{stem}.txt").write_text("".join(f"{row}\n" for row in rows))
    return folder / "labelTxt", folder / "results"


def disagreements(expected: dict[str, Any], coco: tuple[Path, Path], dota: tuple[Path, Path]) -> list[str]:
    """Return what differs from the expectations: curves and summary in bits, AP of DOTA in the order of its sums."""
    wanted = expected["coco_rotated"]
    result = evaluated(*coco, "obb")
    wrong = [
        name for name, found in adapter.arrays(result).items() if not same_bits(found, decode(wanted["arrays"][name]))
    ]
    wrong += [] if same_bits(stats(result), np.array(wanted["stats"], dtype=float)) else ["stats"]
    wanted = expected["dota_task1"]
    for protocol, (mean, ap) in AP_FORMS.items():
        result = jaccard_eval.evaluate(*dota, protocol=protocol)
        wrong += (
            []
            if result["AP"] == pytest.approx(np.nan if wanted[mean] is None else wanted[mean], abs=1e-12, nan_ok=True)
            else [mean]
        )
        # The devkit counts a class without objects as 0; here it has no value.
        per_class = {row.name: row.values["AP"].value for row in result.per_class}
        values = {name: np.nan if row[ap] is None else row[ap] for name, row in wanted["per_class"].items()}
        known = {name: per_class.get(name, np.nan) for name in values}
        wrong += [] if known == pytest.approx(values, abs=1e-12, nan_ok=True) else [ap]
    return wrong


@pytest.mark.parametrize("n", [8, pytest.param(N_ORIENTED, marks=pytest.mark.slow)])
def test_generated_cases_of_oriented_boxes_agree(n: int, shared_oracle: Path, tmp_path: Path) -> None:
    with tarfile.open(shared_oracle / "cases_ext.tar.xz") as archive:
        members = [one for one in archive if one.name.startswith("cases_ext/obb/")]
        archive.extractall(tmp_path, members, filter="data")
    folders = [path.parent for path in sorted(tmp_path.glob("cases_ext/obb/*/expected.json"))]
    assert len(folders) == N_ORIENTED
    wrong = {}
    for folder in folders[-n:]:
        gt, dt = (json.loads((folder / f"{name}.json").read_bytes()) for name in ("gt", "dt"))
        expected = json.loads((folder / "expected.json").read_bytes())
        found = disagreements(expected, as_coco(gt, dt, folder), (folder / "labelTxt", folder / "results"))
        wrong |= {folder.name: found} if found else {}
    assert wrong == {}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("obb_*.json")), ids=lambda path: path.stem)
def test_values_of_oriented_boxes_are_those_derived_by_hand(path: Path, tmp_path: Path) -> None:
    case = json.loads(path.read_bytes())
    sides = as_coco(case["gt"], case["dt"], tmp_path), as_dota(case["gt"], case["dt"], tmp_path)
    assert disagreements(case["oracle"], *sides) == []
    by_hand = {name: float(Fraction(text)) for name, text in case["expect"].items()}
    found = {f"coco.{name}": evaluated(*sides[0], "obb")[name] for name in ("AP", "AP50")}
    found |= {
        f"dota.{mean}": jaccard_eval.evaluate(*sides[1], protocol=protocol)["AP"]
        for protocol, (mean, _) in AP_FORMS.items()
    }
    checked = by_hand.keys() & found.keys()
    assert checked
    assert {name: found[name] for name in checked} == pytest.approx(
        {name: by_hand[name] for name in checked}, abs=1e-12
    )


BAD = SHARED / "oracle" / "bad_ext.tar.xz"


@pytest.mark.skipif(not BAD.is_file(), reason="needs the folder shared/oracle beside the checkout")
def test_every_bad_input_meets_its_expectation(tmp_path: Path) -> None:
    import re
    import warnings

    with tarfile.open(BAD) as archive:
        archive.extractall(tmp_path, filter="data")
    entries = json.loads((tmp_path / "bad_ext/manifest.json").read_bytes())["entries"]
    entries = [entry for entry in overruled(entries) if entry["loader"] in OF_SHAPES]
    assert len(entries) == 141
    of_shapes = {name for name in OVERRULED if name.partition(".")[0] in OF_SHAPES}
    assert of_shapes <= {entry["id"] for entry in entries}
    wrong = []
    for entry in entries:
        gt, pred = (tmp_path / "bad_ext" / entry["files"][side] for side in ("gt", "pred"))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                protocol = "lvis" if entry["loader"] == "lvis" else "coco"
                kind = OF_SHAPES[entry["loader"]]
                findings = jaccard_eval.evaluate(gt, pred, protocol=protocol, iou_type=kind).findings
            errors = False
        except jaccard_eval.DataError as error:
            findings, errors = error.findings, True
        warned = any(str(finding.severity) == "warning" for finding in findings)
        outcome = "error" if errors else "warning" if warned else "ok"
        text = "\n".join(map(str, findings))
        missing = [pattern for pattern in entry["must_mention"] if not re.search(pattern, text, re.IGNORECASE)]
        if outcome not in {entry["expectation"], *entry["also_ok"]} or (outcome != "ok" and missing):
            wrong.append(f"{entry['id']}: {outcome} {missing} {text}")
    assert wrong == []
