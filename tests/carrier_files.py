"""Files as data sets and programs write them, one for each side, of scenes whose values are worked out by hand.

Words: a square of 20 pixels, found 1 pixel off: IoU 19 / 21 = 0.905, which nine of ten thresholds pass.
Poses: points in a box of 48 x 32 pixels, found 2 pixels off: with a sigma of 0.05, OKS = exp(-2**2 / (2 * 48 * 32 *
0.1**2)) = 0.878, which eight of ten thresholds pass.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from command_line import write_json

WORD_AP, POSE_AP, SIGMA = 0.9, 0.8, 0.05
LEFT, MOVED, SCORE = 10.0, 11.0, 0.9
SIZE = (60, 40)  # of the image of words

Pair = tuple[Path, Path]
Write = Callable[[Path], Pair]


def corners(left: float) -> list[list[float]]:
    return [[left, 10], [left + 20, 10], [left + 20, 30], [left, 30]]


def flat(left: float) -> list[float]:
    return [number for pair in corners(left) for number in pair]


def shares(left: float, *, upright: bool = False) -> list[list[float]]:
    ring = [[x / SIZE[0], y / SIZE[1]] for x, y in corners(left)]
    return [ring[0], ring[2]] if upright else ring


def points(count: int, off: float = 0) -> list[list[float]]:
    """Return points from one corner of the box to the other."""
    return [[10 + 48 * at / (count - 1) + off, 20 + 32 * at / (count - 1)] for at in range(count)]


def triples(count: int, third: float, off: float = 0) -> list[float]:
    return [number for pair in points(count, off) for number in (*pair, third)]


def words(folder: Path) -> Path:
    labels = {"a.jpg": {"img_dimensions": SIZE[::-1], "img_hash": "0", "polygons": [corners(LEFT)]}}
    return write_json(folder / "labels.json", labels)


def found(folder: Path) -> Path:
    return write_json(folder / "found.json", {"res_a": [{"points": corners(MOVED), "confidence": SCORE}]})


def people(folder: Path, count: int = 17) -> Path:
    one = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 48, 32], "area": 48 * 32, "iscrowd": 0}
    truth = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 100, "height": 100}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [{**one, "keypoints": triples(count, 2), "num_keypoints": count}],
    }
    return write_json(folder / "people.json", truth)


def poses(folder: Path, count: int, image: object = "a.jpg", **fields: object) -> Path:
    one = {"keypoints": triples(count, 1, 2), "score": SCORE, **fields}
    key = "image" if isinstance(image, str) else "image_id"
    return write_json(folder / "poses.json", [{key: image, **one}])


def aic(folder: Path) -> Pair:
    hidden = [*triples(14, 1)[:-3], 0, 0, 3]  # the last point is not labelled
    side = {"image_id": "a", "url": "", "keypoint_annotations": {"human1": hidden}}
    gt = write_json(folder / "gt.json", [{**side, "human_annotations": {"human1": [10, 20, 58, 52]}}])
    side = {"image_id": "a", "keypoint_annotations": {"human1": triples(14, 1, 2)}}
    return gt, write_json(folder / "found.json", [side])


def posetrack(folder: Path) -> Pair:
    def side(off: float, person: dict[str, Any], **point: Any) -> Any:
        pose = [{"id": [at], "x": [x], "y": [y], **point} for at, (x, y) in enumerate(points(15, off))]
        image = {"image": [{"name": "bonn/000342/a.jpg"}], "imgnum": [1]}
        return {"annolist": [{**image, "annorect": [{"annopoints": [{"point": pose}], **person}]}]}

    head = {"x1": [1], "y1": [1], "x2": [9], "y2": [9], "score": [-1], "track_id": [0]}
    gt = write_json(folder / "gt.json", side(0, head, is_visible=[1]))
    return gt, write_json(folder / "found.json", side(2, {"score": [SCORE], "track_id": [0]}, score=[SCORE]))


def animalpose(folder: Path) -> Pair:
    one = {"image_id": 7, "category_id": 2, "bbox": [10, 20, 58, 52], "num_keypoints": 20}
    pose = [[*pair, 1] for pair in points(20)]
    truth = {
        "images": {"7": "a.jpg"},
        "annotations": [{**one, "keypoints": pose}],
        "categories": [{"id": 2, "name": "cat"}],
    }
    return write_json(folder / "gt.json", truth), poses(folder, 20, 7, category_id=2)


def mmpose(folder: Path) -> Pair:
    pose = [[*pair, 0.8] for pair in points(17, 2)]
    box = [34, 36, 0.3, 0.2, 1536, SCORE]
    batch = {"preds": [pose], "boxes": [box], "image_paths": ["x/a.jpg"], "bbox_ids": [0], "output_heatmap": None}
    return people(folder), write_json(folder / "results.json", [batch])


def mpii(folder: Path) -> Pair:
    own = [[*pair, 1.0] for pair in points(16)]
    image = {"dataset": "MPI", "isValidation": 1.0, "img_paths": "a.jpg", "joint_self": own, "joint_others": []}
    return write_json(folder / "gt.json", [image]), poses(folder, 16)


def paddle(folder: Path) -> Pair:
    pose = [[*pair, SCORE] for pair in points(17, 2)]
    return people(folder), write_json(folder / "found.json", [["demo/a.jpg", [[10, 20, 58, 52]], [[pose], [[SCORE]]]]])


def mediapipe(folder: Path) -> Pair:
    from PIL import Image

    (folder / "images").mkdir(exist_ok=True)
    Image.new("L", (100, 100)).save(folder / "images/a.jpg")
    pose = [{"x": x / 100, "y": y / 100, "z": 0.1, "visibility": SCORE} for x, y in points(33, 2)]
    return people(folder, 33), write_json(folder / "found.json", [{"image": "a.jpg", "pose_landmarks": pose}])


def easy_vitpose(folder: Path) -> Pair:
    frame = {"0": [[y, x, SCORE] for x, y in points(17, 2)]}
    (folder / "out/a.jpg").mkdir(parents=True, exist_ok=True)
    write_json(folder / "out/a.jpg/a_result.json", {"keypoints": [frame], "skeleton": {"0": "nose"}})
    return people(folder), folder / "out"


# Which places of COCO's 17 points OpenPose's 18 have, 17 for the neck between the shoulders.
_OF_OPENPOSE = (0, 17, 6, 8, 10, 5, 7, 9, 12, 14, 16, 11, 13, 15, 2, 1, 4, 3)


def alphapose(folder: Path, people_name: str = "people", pose_name: str = "pose_keypoints_2d") -> Pair:
    pose = points(17, 2)
    pose.append([(pose[5][side] + pose[6][side]) / 2 for side in (0, 1)])
    numbers = [number for at in _OF_OPENPOSE for number in (*pose[at], SCORE)]
    document = {"a.jpg": {"version": "AlphaPose v0.3", people_name: [{pose_name: numbers}]}}
    return people(folder), write_json(folder / "alphapose-results.json", document)


def alphapose_of_cmu(folder: Path) -> Pair:
    return alphapose(folder, "bodies", "joints")


def alphapose_by_image(folder: Path) -> Pair:
    gt, found_ = alphapose(folder)
    (folder / "sep-json").mkdir(exist_ok=True)
    write_json(folder / "sep-json/a.json", json.loads(found_.read_text())["a.jpg"])
    return gt, folder / "sep-json"


def faces(folder: Path) -> Pair:
    for side, off in (("gt", 0), ("pred", 2)):
        (folder / side).mkdir(exist_ok=True)
        lines = "".join(f"{x} {y}\n" for x, y in points(68, off))
        (folder / side / "a.pts").write_text(f"version: 1\nn_points:  68\n{{\n{lines}}}\n")
    return folder / "gt", folder / "pred"


UNSCORED = ("AI Challenger", "300W", "Google, texts", "keras-ocr", "kraken")
POSES: dict[str, Write] = {
    "AI Challenger": aic,
    "AlphaPose": alphapose,
    "AlphaPose, sep-json": alphapose_by_image,
    "AlphaPose, CMU-Pose": alphapose_of_cmu,
    "Animal-Pose": animalpose,
    "easy_ViTPose": easy_vitpose,
    "MediaPipe": mediapipe,
    "MMPose 0": mmpose,
    "MPII": mpii,
    "PaddleDetection": paddle,
    "PoseTrack 2017": posetrack,
    "300W": faces,
}


def doctr_by_class(folder: Path) -> Pair:
    truth = {
        "a.jpg": {"img_dimensions": SIZE[::-1], "img_hash": "0", "polygons": {"price": [corners(LEFT)], "name": []}}
    }
    one = {"image": "a.jpg", "label": "price", "score": SCORE, "polygon": corners(MOVED)}
    return write_json(folder / "gt.json", truth), write_json(folder / "found.json", [one])


def doctr(folder: Path, *, upright: bool = False) -> Pair:
    word = {"value": "W", "confidence": 0.5, "objectness_score": SCORE, "geometry": shares(MOVED, upright=upright)}
    block = {"lines": [{"geometry": word["geometry"], "words": [word]}], "artefacts": []}
    page = {"page_idx": 0, "dimensions": SIZE[::-1], "blocks": [block]}
    (folder / "pred").mkdir(exist_ok=True)
    write_json(folder / "pred/a.json", {"pages": [page]})
    return words(folder), folder / "pred"


def doctr_upright(folder: Path) -> Pair:
    return doctr(folder, upright=True)


def ctw(folder: Path) -> Pair:
    one = {"adjusted_bbox": [LEFT, 10, 20, 20], "attributes": [], "is_chinese": True, "text": "W"}
    sides = {"file_name": "a.jpg", "height": 40, "width": 60, "image_id": "a"}
    ignored = {"bbox": [40, 10, 10, 10], "polygon": [[40, 10], [50, 10], [50, 20], [40, 20]]}
    image = {"annotations": [[{**one, "polygon": corners(LEFT)}]], "ignore": [ignored], **sides}
    boxes = [([MOVED, 10, 20, 20], SCORE), ([40, 10, 10, 10], 0.95)]  # the second lies on what is ignored
    detections = [{"bbox": box, "score": score, "text": "W"} for box, score in boxes]
    found_ = {"detections": detections, "image_id": "a", "file_name": "a.jpg"}
    empty = {"file_name": "b.jpg", "image_id": "b"}
    gt = lines(folder / "gt.jsonl", image, {**image, "annotations": [], "ignore": [], **empty})
    return gt, lines(folder / "found.jsonl", found_, {"detections": [], **empty})


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def davar(folder: Path) -> Pair:
    content = {"bboxes": [flat(LEFT), flat(40)], "cares": [1, 0], "texts": ["W", "V"]}
    truth = {"x/a.jpg": {"height": 40, "width": 60, "content_ann": content}}
    return write_json(folder / "gt.json", truth), found(folder)


def tda_rects(folder: Path) -> Pair:
    image = {"img_name": "a.jpg", "points": [corners(MOVED)], "scores": [SCORE], "texts": ["W"]}
    return words(folder), write_json(folder / "found.json", [image])


def textract(folder: Path) -> Pair:
    from PIL import Image

    (folder / "images").mkdir(exist_ok=True)
    Image.new("L", SIZE).save(folder / "images/a.jpg")
    geometry = {"Polygon": [{"X": x, "Y": y} for x, y in shares(MOVED)]}
    kinds = ("PAGE", "LINE", "WORD")
    blocks = [{"BlockType": kind, "Confidence": 100 * SCORE, "Geometry": geometry} for kind in kinds]
    (folder / "pred").mkdir(exist_ok=True)
    write_json(folder / "pred/a.json", {"DocumentMetadata": {"Pages": 1}, "Blocks": blocks})
    return words(folder), folder / "pred"


def answers(folder: Path, answer: object) -> Pair:
    (folder / "pred").mkdir(exist_ok=True)
    write_json(folder / "pred/a.json", answer)
    return words(folder), folder / "pred"


def google(folder: Path) -> Pair:
    word = {"boundingBox": {"vertices": [{"x": x, "y": y} for x, y in corners(MOVED)]}, "confidence": SCORE}
    page = {"width": 60, "height": 40, "blocks": [{"paragraphs": [{"words": [word]}]}]}
    return answers(folder, {"responses": [{"fullTextAnnotation": {"pages": [page], "text": "W"}}]})


def google_texts(folder: Path) -> Pair:
    whole, word = ({"boundingPoly": {"vertices": [{"x": x, "y": y} for x, y in corners(at)]}} for at in (0, MOVED))
    return answers(folder, {"responses": [{"textAnnotations": [whole, {**word, "description": "W"}]}]})


def kraken(folder: Path) -> Pair:
    truth = [{"image": "a.jpg", "label": "line", "polygon": corners(LEFT)}]
    line = {"id": "l1", "baseline": [[0, 0], [1, 1]], "boundary": corners(MOVED)}
    document = {"type": "baselines", "imagename": "x/a.jpg", "lines": [line]}
    return write_json(folder / "gt.json", truth), write_json(folder / "found.json", document)


def kili(folder: Path) -> Pair:
    rings = [shares(LEFT), [[x / SIZE[0], 1.0] for x in (20, 25, 30)]]  # a hole that is flat
    drawn = [{"normalizedVertices": [{"x": x, "y": y} for x, y in ring]} for ring in rings]
    word = {"boundingPoly": drawn, "categories": [{"name": "word"}], "type": "semantic", "children": {}}
    jobs = {"JOB_0": {"annotations": [word]}, "JOB_1": {"categories": [{"name": "clean"}]}}
    asset = {"externalId": "a.jpg", "resolution": {"width": 60, "height": 40}, "latestLabel": {"jsonResponse": jobs}}
    one = {"image": "a.jpg", "label": "word", "score": SCORE, "polygon": corners(MOVED)}
    return write_json(folder / "data.json", [asset]), write_json(folder / "found.json", [one])


def keras_ocr(folder: Path) -> Pair:
    return answers(folder, [["W", corners(MOVED)]])


def easyocr_by_name(folder: Path) -> Pair:
    return words(folder), write_json(folder / "found.json", {"a.jpg": [[corners(MOVED), "W", SCORE]]})


def azure_read(folder: Path) -> Pair:
    line = {"boundingBox": flat(MOVED), "words": [{"boundingBox": flat(MOVED), "text": "W", "confidence": SCORE}]}
    page = {"page": 1, "width": 60, "height": 40, "unit": "pixel", "lines": [line]}
    return answers(folder, {"status": "succeeded", "analyzeResult": {"version": "3.2.0", "readResults": [page]}})


def azure_pages(folder: Path) -> Pair:
    page = {"pageNumber": 1, "width": 60, "height": 40, "unit": "pixel", "lines": []}
    page["words"] = [{"content": "W", "polygon": flat(MOVED), "confidence": SCORE}]
    return answers(folder, {"status": "succeeded", "analyzeResult": {"modelId": "prebuilt-read", "pages": [page]}})


def xml(folder: Path, text: str, suffix: str = ".xml") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"a{suffix}").write_text(text)
    return folder


def alto(folder: Path) -> Pair:
    word = f'<String HPOS="{MOVED}" VPOS="10" WIDTH="20" HEIGHT="20" WC="{SCORE}" CONTENT="W"/>'
    block = f"<TextBlock><TextLine>{word}</TextLine></TextBlock>"
    page = f'<Page WIDTH="60" HEIGHT="40"><PrintSpace>{block}</PrintSpace></Page>'
    text = f'<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#"><Layout>{page}</Layout></alto>'
    return words(folder), xml(folder / "pred", text)


def page_xml(folder: Path) -> Pair:
    def side(left: float, conf: str = "") -> str:
        ring = " ".join(f"{x},{y}" for x, y in corners(left))
        line = f'<TextLine id="l1"><Coords points="{ring}"{conf}/><Baseline points="0,0 1,1"/></TextLine>'
        region = f'<TextRegion id="r1"><Coords points="0,0 60,0 60,40"/>{line}</TextRegion>'
        page = f'<Page imageFilename="a.jpg" imageWidth="60" imageHeight="40">{region}</Page>'
        space = "http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15"
        return f'<?xml version="1.0"?><PcGts xmlns="{space}"><Metadata/>{page}</PcGts>'

    return xml(folder / "gt", side(LEFT)), xml(folder / "pred", side(MOVED, f' conf="{SCORE}"'))


def hocr(folder: Path) -> Pair:
    word = '<span class="ocrx_word" id="w" title="bbox 11 10 31 30; x_wconf 90">W</span>'
    page = (
        f'<div class="ocr_page" title="bbox 0 0 60 40"><span class="ocr_line" title="bbox 0 0 9 9">{word}</span></div>'
    )
    text = f'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head/><body>{page}</body></html>'
    return words(folder), xml(folder / "pred", text, ".hocr")


WORDS: dict[str, Write] = {
    "ALTO": alto,
    "Azure, pages": azure_pages,
    "Azure, read": azure_read,
    "CTW": ctw,
    "DAVAR": davar,
    "docTR by class": doctr_by_class,
    "docTR, export": doctr,
    "docTR, upright": doctr_upright,
    "EasyOCR by name": easyocr_by_name,
    "Google": google,
    "Google, texts": google_texts,
    "hOCR": hocr,
    "keras-ocr": keras_ocr,
    "Kili": kili,
    "kraken": kraken,
    "PAGE": page_xml,
    "TDA-ReCTS": tda_rects,
    "Textract": textract,
}
