"""The command lines whose output is frozen: all that succeed, find something odd, or fail a gate; no errors.

A case is the line itself, run in a folder of its own with links to `sample_data`, to label maps and configurations
(`saved`), to results written just before (`made`) and to the real sets (`data`).
"""

from itertools import product
from pathlib import Path

from command_line import COMMANDS

SAMPLE = Path(__file__).parents[2] / "sample_data"
GT, BETTER, WORSE = (f"sample_data/coco/{name}.json" for name in ("gt", "better", "worse"))
PAIR = f"{GT} {BETTER}"
KNOWN = "--images sample_data/yolo/images/val"  # sizes, for normalised boxes
SEGMENTS = "sample_data/panoptic/gt.json sample_data/panoptic/worse.json"
MAPS = "saved/inputs/maps/gt saved/inputs/maps/pred"
RUNS = "made/worse.npz made/better.npz"

MADE = [
    f"evaluate {GT} sample_data/coco/{side}.json -q --isolated -o made/{side}.json -o made/{side}.npz"
    for side in ("better", "worse")
]

ANY_KIND = (
    "r.txt", "r.md", "r.json", "r.csv", "r.xml", "r.prom", "metrics.txt", "badge.json", "gl-code-quality-report.json",
)  # fmt: skip
OF_EVALUATIONS = ("r.npz", "thresholds.yaml", "thresholds.json", "confusion.csv", "curves.csv", "calibration.csv")
PICTURES = ("r.svg", "r.png")


def outputs(names: tuple[str, ...]) -> str:
    return " ".join(f"-o {name}" for name in names)


HELP = ["--help", "--version", *(f"{one} --help" for one in COMMANDS), "formats", "formats --json", "gate --schema"]

FILES = [
    f"evaluate {PAIR} {outputs(ANY_KIND + OF_EVALUATIONS)}",
    f"evaluate {PAIR} {outputs(PICTURES)}",
    f"evaluate {PAIR} --no-errors {outputs(ANY_KIND)}",
    f"evaluate {PAIR} --fail-under AP=0.9 --fail-under AP50=0.5 {outputs((*ANY_KIND, 'r.npz'))}",
    f"compare {GT} {WORSE} {BETTER} {outputs(ANY_KIND)}",
    f"inspect {PAIR} {outputs(ANY_KIND)}",
    f"explain {PAIR} {outputs(ANY_KIND)}",
    f"gate made/better.json --fail-under AP=0.9 --fail-under AP50=0.5 {outputs(ANY_KIND)}",
    f"panoptic {SEGMENTS} {outputs(ANY_KIND)}",
    f"pixels {MAPS} --ignore 9 {outputs(ANY_KIND)}",
    f"sensitivity {PAIR} {outputs(ANY_KIND)}",
    f"sensitivity {PAIR} {outputs(PICTURES)}",
    f"overlap 6,1,18,9 1,3,13,11 {outputs(ANY_KIND)}",
    f"verify made/better.json {PAIR} {outputs(ANY_KIND)}",
]

EVALUATED = [  # options of `evaluate`, with the JSON document beside the text
    "-q",
    "--color always --per-class",
    "--json",
    "--protocol voc2007",
    "--protocol voc2012 --per-class",
    "--per-class",
    "--per-class --sort AP",
    "--sort name",
    "--sort gt",
    "--iou 0.5",
    "--iou 0.5,0.75 --per-class",
    "--iou 0.3:0.7:0.1",
    "--max-dets 1,3",
    "--max-dets none",
    "--areas small=0:32²,large=32²:inf",
    "--class-agnostic",
    "--classes dog,car",
    "--exclude-classes person",
    "--score-min 0.5",
    "--nms 0.5",
    "--drop-duplicates",
    "--score 0.5",
    "--score best-f1 --per-class",
    "--errors",
    "--errors --per-class --score 0.6",
    "--errors --protocol voc2012",
    "--bootstrap 50 --seed 3",
    "--bootstrap 50 --confidence 0.8 --per-class",
    "--bootstrap 20 --group-by saved/config/groups.csv",
    "--slice first=street_0[1-6]* --slice rest=street_1*",
    "--slices saved/config/slices.toml --bootstrap 20",
    "--class-map 17=dog,18=cat",
    "--class-map saved/config/class-map.json",
    "--class-map saved/config/class-map.yaml",
    "--class-map auto",
    "--match-images id",
    "--extra-images ignore",
    "--extra-images empty",
    "--strict",
    "--bootstrap 20 --strict --allow bootstrap-few",
    "--pred-box xyxy",
    "--gt-box cxcywh -q",
    "--gt-box xywh --pred-box xywh --gt-format coco --pred-format coco",
    "--gt-origin 1 --pred-origin 1",
    "--images sample_data/yolo/images/val",
]

GATED = [  # rules, for `evaluate` and `gate` alike; some fail
    "--fail-under AP=0.6",
    "--fail-under AP=0.7",
    "--fail-under AP=0.7 --exit-zero",
    "--fail-over FPPI[iou=0.5,score=0.4]=0.1 --fail-under recall[iou=0.5,score=0.4,class=dog]=0.9",
    "--fail-drop AP=0.01 --baseline made/worse.json",
    "--fail-drop AP=0.01 --baseline made/missing.json --allow-missing-baseline",
    "--fail-significant-drop AP=0.01 --baseline made/worse.json",
    "--fail-inferior AP=0.01 --baseline made/worse.npz --bootstrap 50",
    "--fail-over external.latency_ms=15 --metric latency_ms=16",
    "--fail-over external.latency_ms=15 --metrics-file saved/config/external.json -q",
    "--config saved/config/jaccard-eval.toml --metrics-file saved/config/external.json",
    "--config saved/config/gates.yaml",
    "--fail-under AP=0.7 --ci github",
    "--fail-under AP=0.7 --ci gitlab",
    "--fail-under AP=0.7 --json",
]
BOTH_WAYS = [
    line
    for rules in GATED
    for line in (f"evaluate {PAIR} {rules} -o r.json", f"gate made/better.npz {rules} -o r.json")
]

FURTHER = [
    f"{PAIR} --per-class",
    f"compare {GT} {WORSE} {BETTER}",
    f"verify made/better.json --gt {GT} --pred {BETTER}",
    f"evaluate {GT} {WORSE} --fail-drop AP=0.01 --baseline made/better.json -o r.md",
    f"evaluate {GT} {WORSE} --fail-significant-drop AP=0.01 --baseline made/better.npz -o r.xml",
    f"evaluate {PAIR} --fail-under AP=0.5 --baseline new.json --update-baseline",
    f"evaluate {PAIR} --fail-under AP=0.7 --baseline new.json --update-baseline",
    "gate made/better.json --fail-under AP50[class=dog]=0.9 --fail-over AP_small=0.5",
    f"evaluate --gt {GT} --pred {WORSE} --score 0.4 --errors -o r.txt -o r.json",
    f"compare {GT} {WORSE} {BETTER} --per-class --score 0.5 --box-iou 0.75 -o r.json",
    f"compare {GT} {WORSE} {BETTER} {WORSE} --moved-iou 0.1 -o r.json -o r.md",
    f"compare {GT} {WORSE} {BETTER} --protocol voc2012 -o r.json",
    f"compare {GT} {BETTER} {WORSE} --bootstrap 50 --seed 1 --slice first=street_0[1-6]* -o r.json",
    f"compare {GT} {BETTER} {WORSE} --bootstrap 50 --group-by saved/config/groups.csv",
    f"compare {RUNS} -o r.json",
    f"compare {RUNS} --json",
    "compare made/worse.json made/better.json",
    f"labels {PAIR} -o r.json -o r.csv",
    "suite sample_data/suite.toml --no-cache -o r.json -o r.csv -o r.html",
    f"report {RUNS} made/worse.json -o r.json -o r.csv -o r.html",
    f"report {RUNS} --json --bootstrap 0",
    f"labels {GT} {WORSE} {BETTER} --json",
    f"inspect {GT}",
    f"inspect {BETTER}",
    f"inspect {PAIR} --json",
    "inspect sample_data/yolo/data.yaml sample_data/yolo/better",
    "inspect sample_data/csv/gt.csv sample_data/csv/better.csv --match-images stem -o r.json",
    f"explain {PAIR} AP50[class=person] --against voc2012 -o r.json",
    f"explain {PAIR} AR100 --boxes 3 -o r.json",
    f"explain {PAIR} F1[iou=0.5,score=0.4] -o r.json",
    f"explain {PAIR} precision[score=best-f1] -o r.csv",
    f"explain {PAIR} AP --protocol voc2007 --against coco -o r.md",
    f"explain {PAIR} recall[iou=0.75,score=0.3,class=dog] --json",
    "explain made/worse.json AP75 -o r.json",
    f"panoptic {SEGMENTS} --iou-type boundary --per-class --bootstrap 20 --fail-under PQ=0.9 -o r.json",
    f"panoptic {SEGMENTS} --against sample_data/panoptic/better.json --slice a=*1.jpg --sort PQ -o r.md",
    f"pixels {MAPS} --classes sky,road,car --ignore 9 --background 0 --drop-background gt -o r.json",
    f"pixels {MAPS} --ignore 9 --sort IoU --json",
    f"pixels {MAPS} --ignore 9 --fail-under mIoU=0.9 -o r.xml -o badge.json",
    "pixels saved/inputs/maps/gt/a.png saved/inputs/maps/pred/a.png --reduce-zero",
    f"nms {BETTER} -o out.json",
    f"nms {WORSE} -o out.json --iou 0.3 --by ioa --score-min 0.2",
    f"nms {WORSE} -o out.json --class-agnostic",
    f"nms {WORSE} -o out.json --score-min 0.3 --json",
    "nms sample_data/csv/worse.csv -o out.csv --iou 0.2",
    f"nms sample_data/yolo/worse -o out --iou 0.2 --names person,bicycle,car,cat,dog {KNOWN}",
    f"sensitivity {PAIR} --bins 3 --per-class -o r.json",
    f"sensitivity {PAIR} --edges 32,96 --pixels 1,3 --pair-iou 0.3 --protocol voc2012 -o r.json",
    "overlap 10,20,40,60 20,30,40,60 --box xywh -o r.json",
    "overlap 10,20,40,60 20,30,40,60 --box cxcywh --json",
    "overlap -- -5,0,10,10 0,0,10,10",
    f"overlap --gt {GT} --pred {BETTER} --image street_01.png -o r.json",
    f"overlap --gt {GT} --pred {BETTER} --image street_01.png --gt-index 0 --pred-index 2",
    f"verify made/better.json --gt {GT} --pred {BETTER} --json",
]


def files_of(role: str) -> dict[str, str]:
    """The sample in each format that has it, for one side."""
    stem = {"gt": "gt", "pred": "better"}[role]
    found = {path.parent.name: path for path in sorted(SAMPLE.glob(f"*/{stem}*"))}
    found.pop("panoptic")  # segments, which have a command of their own
    paths = {name: f"sample_data/{path.relative_to(SAMPLE).as_posix()}" for name, path in found.items()}
    return {"yolo": "sample_data/yolo/data.yaml", **paths} if role == "gt" else paths


CLASSES = ",".join(
    {1: "person", 2: "bicycle", 3: "car", 17: "cat", 18: "dog"}.get(at, f"unused{at}") for at in range(19)
)


def names_for(side: str, name: str) -> str:
    return f" --{side}-names {CLASSES}" if name == "torchvision" else ""  # classes are numbers there


OF_FORMATS = [
    *(
        f"evaluate {path} sample_data/csv/better.csv {KNOWN}{names_for('gt', name)} -o r.json"
        for name, path in files_of("gt").items()
    ),
    *(
        f"evaluate {GT} {path} {KNOWN}{names_for('pred', name)} -o r.json"
        for name, path in files_of("pred").items()
        if name not in ("coco", "csv")
    ),
    *(f"inspect {path} {KNOWN}{names_for('gt', name)} -o r.json" for name, path in files_of("gt").items()),
]

WRITTEN = {
    "arrow": "out.arrow", "coco": "out.json", "csv": "out.csv", "openimages": "out.csv",
    "parquet": "out.parquet", "voc": "out", "yolo": "out",
}  # fmt: skip
CONVERTED = [
    *(
        f"convert {source} {target} --to {name} --lossy {KNOWN}"
        for (name, target), source in product(WRITTEN.items(), (GT, "sample_data/roboflow/better"))
    ),
    "convert sample_data/yolo/data.yaml out.json --json",
    "convert sample_data/cvat/gt.xml out.csv",
    f"convert {BETTER} out.feather --role pred",
    "convert sample_data/csv/worse.csv out.json --role gt -q",
]

FASTER = "data/faster-coco-eval/tests/dataset"
COCO_100 = (
    f"{FASTER}/cocoapi/instances_val2014_100.json data/cocoapi/results/instances_val2014_fakebbox100_results.json"
)
WASTE = "data/d2-medwaste/data/test/_annotations.coco.json data/d2-medwaste/output/coco_instances_results.json"
CARTUCHO = "data/cartucho-map/input/ground-truth data/cartucho-map/input/detection-results"
TOY = "data/padilla-review/toyexample"
TREES = "data/deepforest-csv/src/deepforest/data/2018_SJER_3_252000_4107000_image_477"
LABEL_MAPS = "data/semseg-unet-zplayerez"
REAL = [
    f"evaluate {COCO_100} --errors -o r.json -o r.npz -o r.csv -o curves.csv",
    f"evaluate {COCO_100} --protocol voc2007 --per-class",
    f"evaluate {COCO_100} --score best-f1 --per-class -o r.json",
    f"evaluate {COCO_100} --bootstrap 20",
    f"explain {COCO_100} AP -o r.json",
    f"sensitivity {COCO_100} -o r.json",
    f"inspect {COCO_100}",
    f"convert {COCO_100.split(maxsplit=1)[0]} out.json --lossy",
    f"evaluate {WASTE} --errors -o r.json -o r.npz",
    f"evaluate {WASTE} --nms 0.5 --per-class",
    f"inspect {WASTE}",
    f"evaluate {CARTUCHO} --protocol voc2012 --per-class -o r.json",
    "evaluate data/yfpeng-odm/tests/sample/groundtruths_coco.json data/yfpeng-odm/tests/sample/detections_coco.json"
    " --protocol voc2012 -o r.json",
    "evaluate data/padilla-odm/groundtruths data/padilla-odm/detections --protocol voc2012 --iou 0.3 -o r.json",
    *(
        f"evaluate {TOY}/gts_coco_format/toy_example_coco.JSON {TOY}/{form} --protocol voc2007 -o r.json"
        for form in ("dets_coco_format/coco_dets.json", "dets_classname_abs_xywh", "dets_classname_rel_xcycwh")
    ),
    f"evaluate {TREES}_truth.csv {TREES}.csv -o r.json",
    "inspect data/deepforest-csv/src/deepforest/data/testfile_multi.csv",
    f"pixels {LABEL_MAPS}/VOCdevkit/VOC2007/SegmentationClass {LABEL_MAPS}/miou_out/detection-results"
    f" --list {LABEL_MAPS}/VOCdevkit/VOC2007/ImageSets/Segmentation/val.txt -o r.json",
]

CASES = [*HELP, *FILES, *(f"evaluate {PAIR} {one} -o r.json" for one in EVALUATED), *BOTH_WAYS, *FURTHER]
CASES += [*OF_FORMATS, *CONVERTED]

ROUNDED = {  # cases whose last bits hang on how numpy sums and exponentiates, which its versions do differently
    f"explain {COCO_100} AP -o r.json",
    f"sensitivity {COCO_100} -o r.json",
    f"nms {WORSE} -o out.json --score-min 0.3 --json",
}

SCREENS = {  # cases whose text is kept as well, for a change to be read
    f"{PAIR} --per-class": "evaluate.txt",
    f"evaluate {PAIR} --errors -o r.json": "errors.txt",
    f"evaluate {PAIR} --bootstrap 50 --seed 3 -o r.json": "bootstrap.txt",
    f"evaluate {PAIR} --fail-drop AP=0.01 --baseline made/worse.json -o r.json": "baseline.txt",
    f"compare {GT} {WORSE} {BETTER}": "compare.txt",
    f"inspect {BETTER}": "inspect.txt",
    f"explain {PAIR} AP50[class=person] --against voc2012 -o r.json": "explain.txt",
    "gate made/better.json --fail-under AP50[class=dog]=0.9 --fail-over AP_small=0.5": "gate.txt",
    f"pixels {MAPS} --classes sky,road,car --ignore 9 --background 0 --drop-background gt -o r.json": "pixels.txt",
    f"sensitivity {PAIR} --edges 32,96 --pixels 1,3 --pair-iou 0.3 --protocol voc2012 -o r.json": "sensitivity.txt",
    "overlap 10,20,40,60 20,30,40,60 --box xywh -o r.json": "overlap.txt",
    f"verify made/better.json --gt {GT} --pred {BETTER}": "verify.txt",
    f"nms {WORSE} -o out.json --iou 0.3 --by ioa --score-min 0.2": "nms.txt",
}
