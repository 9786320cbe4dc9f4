"""What other tools print, and which protocol here gives the same number: one list, for the help and the docs."""

from __future__ import annotations

from jaccard_eval.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A number of another tool, and how it is had here; `shown` by tests, or what is known to differ."""

    name: str
    prints: str
    protocol: str
    close: str  # to how many digits, and of what
    shown: str


TOOLS = (
    Tool(
        name="pycocotools 2.0.11",
        prints="the twelve numbers of COCOeval.summarize, ten of poses",
        protocol="coco",
        close="to the last bit; poses 1e-12",
        shown="tests/oracle/test_against_pycocotools.py, run against it",
    ),
    Tool(
        name="torchmetrics 1.9",
        prints="map, map_50, map_75 and the like of MeanAveragePrecision",
        protocol="coco",
        close="its thresholds and recalls are 32-bit: equal with jaccard_eval.torchmetrics, strict=True",
        shown="tests/test_torchmetrics_metric.py, run against it",
    ),
    Tool(
        name="supervision 0.31",
        prints="map50_95, map50, map75 of metrics.MeanAveragePrecision",
        protocol="coco",
        close="the same rules, read in its source",
        shown="not run on drawn sets",
    ),
    Tool(
        name="Ultralytics 8.4.176 and later",
        prints="P, R, mAP50 and mAP50-95 of yolo val",
        protocol="ultralytics",
        close="2e-16 of arrays; of its files 0 to .015 (Exactness)",
        shown="tests/oracle/test_ultralytics_rules.py, numbers of its functions on drawn sets",
    ),
    Tool(
        name="Ultralytics 8.4.37 to 8.4.175",
        prints="the same",
        protocol="ultralytics-8.4.37",
        close="2e-16 of arrays",
        shown="tests/oracle/test_ultralytics_rules.py",
    ),
    Tool(
        name="Ultralytics 8.0 to 8.4.36",
        prints="the same",
        protocol="ultralytics-8.0",
        close="2e-16 of arrays, of 8.4.36",
        shown="tests/oracle/test_ultralytics_rules.py",
    ),
    Tool(
        name="YOLOv5 from 6.1 on",
        prints="P, R, mAP50 and mAP50-95 of val.py",
        protocol="ultralytics-8.0",
        close="the same functions",
        shown="not run here",
    ),
    Tool(
        name="mmdet 3.3.0",
        prints="mAP of eval_map (VOCMetric)",
        protocol="mmdet",
        close="1e-7: its averages are 32-bit",
        shown="tests/oracle/test_other_tools.py, numbers of eval_map on drawn sets",
    ),
    Tool(
        name="detectron2 e6b3a96d",
        prints="AP, AP50, AP75 of PascalVOCDetectionEvaluator (2012)",
        protocol="detectron2-voc",
        close="2e-16",
        shown="tests/oracle/test_other_tools.py, numbers of voc_eval on drawn sets",
    ),
    Tool(
        name="keras-retinanet 1.0.0",
        prints="mAP of evaluate, which drops scores up to .05 first",
        protocol="keras-retinanet",
        close="2e-16",
        shown="tests/oracle/test_other_tools.py, numbers of evaluate on drawn sets",
    ),
    Tool(
        name="Cartucho mAP",
        prints="mAP and the AP of each class",
        protocol="voc2012",
        close="as published, to two decimals of a per cent",
        shown="tests/realdata/test_published_numbers.py, its own example",
    ),
    Tool(
        name="Padilla's toolkit",
        prints="AP by every point",
        protocol="voc2012",
        close="as published",
        shown="tests/realdata/test_published_numbers.py, its own examples",
    ),
    Tool(
        name="VisDrone2018-DET-toolkit 00544578",
        prints="AP, AP50, AP75, AR1, AR10, AR100, AR500 of evalDET.m",
        protocol="visdrone",
        close="1e-15: wAP, wAP50, ..., wAR500 here; AP and AR are the plain means",
        shown="tests/oracle/test_visdrone.py, numbers of calcAccuracy under Octave on 100 drawn sets",
    ),
    Tool(
        name="KITTI's development kit (kitti_eval 955c04c4)",
        prints="the 41 slots of each class and difficulty of 2D boxes, and their mean at 11",
        protocol="kitti",
        close="2e-16: AP is the mean of slots 1 to 40, AP_R11 that at 11; AP[subset=easy,class=Car]",
        shown="tests/oracle/test_kitti_rules.py, numbers of its 2D functions, compiled, on 100 drawn sets",
    ),
    Tool(
        name="CrowdPose's COCOeval 86fe5e11",
        prints="AP, AP50, AR, and AP of easy, medium and hard images",
        protocol="crowdpose",
        close="1e-12, before it rounds",
        shown="tests/oracle/test_subsets.py, numbers of it on 100 drawn sets",
    ),
    Tool(
        name="xtcocotools 1.14 (AP-10K, Human-Art, COCO-WholeBody)",
        prints="AP, AP50, AP75, APM, APL and AR of poses whose points have sigmas of their own",
        protocol="coco",
        close="1e-12, before it rounds; sigmas ap10k, humanart, wholebody, which joins the lists of a body",
        shown="tests/oracle/test_named_sigmas.py, numbers of it on 100 drawn sets",
    ),
    Tool(
        name="WIDER FACE eval_tools (MATLAB)",
        prints="AP of easy, medium and hard faces",
        protocol="widerface",
        close="2e-16: AP[subset=easy]; ports that do not sort by score differ by up to .09",
        shown="tests/oracle/test_widerface.py, numbers of its Python port on 100 drawn sets, sorted as MATLAB sorts",
    ),
    Tool(
        name="CrowdDet fa0b55b6 (CrowdHuman)",
        prints="AP, MR (LAMR here) and the best JI of compute_APMR and compute_JI",
        protocol="crowdhuman",
        close="2e-16",
        shown="tests/oracle/test_crowdhuman.py, numbers of its functions on 100 drawn sets",
    ),
    Tool(
        name="eval_MR_multisetup.py (CityPersons 839c22fb)",
        prints="MR-2 of reasonable, small, heavy and all",
        protocol="citypersons",
        close="1e-12: LAMR[subset=reasonable]; heavy-csp is what CSP and Pedestron call heavy. Below 100 images it may"
        " take the best recall of the curve where no point is within a rate, which is 0 here",
        shown="tests/oracle/test_citypersons.py, numbers of it on 100 drawn sets",
    ),
    Tool(
        name="Piotr's toolbox (Caltech)",
        prints="log-average miss rates of bbGt.m",
        protocol="caltech",
        close="read in its source; boxes are not brought to one aspect ratio, as Caltech's dbEval does",
        shown="tests/oracle/test_citypersons.py, by hand arithmetic; it was not run",
    ),
    Tool(
        name="cityscapesScripts 0bcc4a72",
        prints="AP and AP50 of instances, over all and of each class",
        protocol="cityscapes",
        close="1e-9: neither VOC's nor COCO's; where all detections of a class are ignored it fails, 0 here",
        shown="tests/oracle/test_cityscapes.py, numbers of it on 100 drawn sets",
    ),
    Tool(
        name="ICDAR 2015's script.py (1c9fc583)",
        prints="recall, precision and H-mean of words, and AP of those with scores",
        protocol="icdar",
        close="1e-9, its polygons those of shapely; H-mean is F1. One point: all detections",
        shown="tests/oracle/test_icdar_rules.py, numbers of it on 100 drawn sets",
    ),
    Tool(
        name="ctdar_measurement_tool 738456d3 (cTDaR)",
        prints="F1 of tables at IoU 0.6, 0.7, 0.8 and 0.9 of track A; its paper weights them",
        protocol="ctdar",
        close="1e-9, of tables of four corners; wF1 is the weighted F1. Where no pair is found it fails, 0 here",
        shown="tests/oracle/test_ctdar.py, numbers of its pairs on 100 drawn sets, and hand arithmetic of the weights",
    ),
    Tool(
        name="NWPU-Crowd-Sample-Code-for-Localization acf44568 (NWPU-Crowd)",
        prints="AP_large, AR_large and F1m_large (precision, recall and F1), and MAE, MSE and NAE of counts",
        protocol="nwpu",
        close="1e-9: its MSE is count_RMSE; its recalls by level of size are not here",
        shown="tests/oracle/test_points.py, numbers of its functions on 100 drawn sets",
    ),
    Tool(
        name="NWPU-Crowd-Sample-Code-for-Localization acf44568, sigma_s",
        prints="AP_small, AR_small and F1m_small",
        protocol="nwpu-small",
        close="1e-9, of the benchmark's own lists, whose shorter sides are read as widths",
        shown="tests/oracle/test_points.py, numbers of its functions on 100 drawn sets",
    ),
    Tool(
        name="stardist 650d3a19 matching_dataset",
        prints="tp, fp, fn, precision, recall, accuracy and f1 at each IoU threshold, mean_matched_score",
        protocol="cells",
        close="counts equal, ratios 1e-12, mean_IoU 1e-6. by_image=True is image_accuracy, but that"
        " counts images with neither objects nor detections as 0",
        shown="tests/oracle/test_cell_rules.py, its numbers on 100 drawn sets",
    ),
    Tool(
        name="cellpose 849ca11f average_precision",
        prints="TP / (TP + FP + FN) of each image at each IoU threshold, called AP",
        protocol="cells",
        close="2e-6, as it has single precision: the mean over images is image_accuracy50, image_accuracy75",
        shown="tests/oracle/test_cell_rules.py, its numbers on 100 drawn sets",
    ),
    Tool(
        name="Data Science Bowl 2018 (Kaggle)",
        prints="mean average precision at different intersection over union thresholds",
        protocol="dsb2018",
        close="1e-9, of the rules as published: its script is not",
        shown="tests/oracle/test_cell_rules.py, numbers of SciPy's assignment on 100 drawn sets, and hand arithmetic",
    ),
    Tool(
        name="noduleCADEvaluationLUNA16.py (LUNA16)",
        prints="sensitivity at seven rates of false positives, and their mean (CPM)",
        protocol="froc",
        close="1e-9, except for one step at a rate that is reached exactly; no hit is 0, and 0 / 0 there",
        shown="tests/oracle/test_luna16.py, sensitivities of the script on 112 drawn sets; boxes by hand arithmetic",
    ),
    Tool(
        name="aitodpycocotools",
        prints="AP, AP50, AP75, APvt, APt, APs, APm; its AP25 is always -1, as .25 is none of the thresholds",
        protocol="aitod",
        close="to the last bit",
        shown="tests/oracle/test_against_pycocotools.py, run against pycocotools with its sizes and caps",
    ),
    Tool(
        name="SODA-D's evaluator",
        prints="AP and AP of eS, rS, gS and Normal, of merged crops",
        protocol="soda",
        close="to the last bit",
        shown="tests/oracle/test_against_pycocotools.py, run against pycocotools with its sizes and cap",
    ),
    Tool(
        name="lvis-api 0.5.3",
        prints="AP, APr, APc, APf and the like of LVISEval",
        protocol="lvis",
        close="to the last bit",
        shown="tests/oracle/test_lvis.py, run against it",
    ),
    Tool(
        name="TensorFlow Object Detection API",
        prints="mAP of its Open Images evaluators",
        protocol="openimages, openimages-challenge",
        close="to the last bit of its recorded cases",
        shown="tests/oracle/test_openimages_cases.py",
    ),
    Tool(
        name="FiftyOne",
        prints="mAP of evaluate_detections, method='coco'",
        protocol="coco",
        close="equal scores stand otherwise there: true positives first",
        shown="read in its source",
    ),
)
