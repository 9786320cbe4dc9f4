"""Drawn sets whose numbers other tools computed: crowded labels, detections around them; each score occurs once."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# By image: boxes (n, 4) as left, top, width, height with three decimals, classes, and of detections scores.
Images = list[tuple[Array, ...]]


def drawn_images(seed: int) -> tuple[Images, Images]:
    """Draw labels and detections of one to four classes on two to eight images, detections by descending score."""
    rng = np.random.default_rng(seed)
    n_images, n_classes = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    scores = list(rng.permutation(9000) / 9000 + 0.00005)
    labels: Images = []
    detected: Images = []
    for _ in range(n_images):
        n = int(rng.integers(0, 9))
        boxes = np.concatenate([rng.uniform(0, 200, (n, 2)), rng.uniform(8, 90, (n, 2))], 1)
        if n > 2:
            boxes[1] = boxes[0] + rng.normal(0, 4, 4)
        boxes[:, 2:] = np.abs(boxes[:, 2:]) + 1
        classes = rng.integers(0, n_classes, n)
        found: list[Any] = []
        for k in range(n):
            for _ in range(int(rng.integers(0, 4))):
                moved = boxes[k] + rng.normal(0, rng.choice([1, 6, 15]), 4)
                found.append((*moved, classes[k] if rng.random() < 0.85 else rng.integers(0, n_classes)))
        found += [
            (*rng.uniform(0, 200, 2), *rng.uniform(8, 90, 2), rng.integers(0, n_classes))
            for _ in range(int(rng.integers(0, 5)))
        ]
        rows = np.array(found).reshape(-1, 5)
        rows[:, 2:4] = np.abs(rows[:, 2:4]) + 1
        score = np.array([scores.pop() for _ in rows])
        order = np.argsort(-score)
        labels.append((np.round(boxes, 3), classes))
        detected.append((np.round(rows[order, :4], 3), rows[order, 4].astype(int), np.round(score[order], 5)))
    return labels, detected


def columns(images: Images) -> list[Array]:
    """Return image, class, boxes and what else there is, one row a box."""
    image = np.concatenate([np.full(len(boxes), row) for row, (boxes, *_) in enumerate(images)])
    boxes, label, *others = (np.concatenate(parts) for parts in zip(*images, strict=True))
    return [image, label, boxes, *others]


def drawn_crowds(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draw images of persons, some ignored and some beyond the border, and detections, as records of CrowdHuman."""
    rng = np.random.default_rng(seed)
    scores = list(rng.permutation(9000) / 9000 + 0.00005)
    truth, found = [], []
    for i in range(int(rng.integers(2, 9))):
        size = {"ID": f"i{i}", "width": int(rng.integers(150, 260)), "height": int(rng.integers(150, 260))}
        n = int(rng.integers(1, 10))
        boxes = np.concatenate([rng.uniform(-20, 200, (n, 2)), rng.uniform(8, 90, (n, 2))], 1)
        if n > 2:
            boxes[1] = boxes[0] + rng.normal(0, 4, 4)
        boxes[:, 2:] = np.abs(boxes[:, 2:]) + 1
        tags = [("person", 0) if rng.random() > 0.25 else (str(rng.choice(["person", "mask"])), 1) for _ in range(n)]
        moved = [
            box + rng.normal(0, rng.choice([1, 6, 15]), 4) for box in boxes for _ in range(int(rng.integers(0, 4)))
        ]
        moved += [[*rng.uniform(-20, 200, 2), *rng.uniform(8, 90, 2)] for _ in range(int(rng.integers(0, 5)))]
        rows = np.array(moved).reshape(-1, 4)
        rows[:, 2:] = np.abs(rows[:, 2:]) + 1
        truth.append(
            {
                **size,
                "gtboxes": [
                    {"tag": tag, "fbox": box, "vbox": box, "hbox": box, "extra": {"ignore": mark}}
                    for box, (tag, mark) in zip(np.round(boxes, 3).tolist(), tags, strict=True)
                ],
            }
        )
        dets = [{"box": box, "score": round(float(scores.pop()), 5)} for box in np.round(rows, 3).tolist()]
        found.append({**size, "dtboxes": dets})
    return truth, found


Scene = tuple[tuple[int, int], list[list[float]], list[list[float]]]


def drawn_aerial(seed: int) -> list[Scene]:
    """Draw the size, the annotations and the detections of images, as lines of VisDrone have them."""
    rng = np.random.default_rng(seed)
    scenes: list[Scene] = []
    for _ in range(int(rng.integers(2, 7))):
        size = int(rng.integers(120, 260)), int(rng.integers(120, 260))
        n_regions = int(rng.integers(0, 3))
        truth: list[Any] = [[*rng.integers(0, 200, 2), *rng.integers(5, 80, 2), 0, 0, 0, 0] for _ in range(n_regions)]
        found: list[Any] = []
        for _ in range(int(rng.integers(1, 10))):
            box = [*rng.integers(0, 200, 2), *rng.integers(6, 70, 2)]
            category = int(rng.integers(1, 5)) if rng.random() < 0.9 else 11
            truth.append([*box, int(rng.random() < 0.85), category, 0, int(rng.integers(0, 3))])
            for _ in range(int(rng.integers(0, 4))):
                moved = np.array(box) + np.round(rng.normal(0, rng.choice([1, 4, 10]), 4)).astype(int)
                moved[2:] = np.maximum(moved[2:], 2)
                same = rng.random() < 0.85 and category < 11
                found.append([*moved, category if same else int(rng.integers(1, 5))])
        n_others = int(rng.integers(1, 6))
        found += [[*rng.integers(0, 200, 2), *rng.integers(6, 70, 2), int(rng.integers(1, 6))] for _ in range(n_others)]
        rng.shuffle(truth)
        scores = np.sort(rng.choice(9000, len(found), replace=False))[::-1] / 9000 + 0.00005
        rows = zip(rng.permutation(found).tolist(), scores, strict=True)
        detections = [[*row[:4], round(float(score), 5), row[4], -1, -1] for row, score in rows]
        scenes.append((size, [list(map(int, row)) for row in truth], detections))
    return scenes


def drawn_poses(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw images of several crowds with persons of 14 points, and results, as files of CrowdPose have them."""
    rng = np.random.default_rng(seed)
    images: list[dict[str, Any]] = []
    truth: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    scores = list(rng.permutation(9000) / 9000 + 0.00005)

    def add(image: int, points: Array) -> None:
        record = {"image_id": image, "category_id": 1, "keypoints": points.ravel().tolist()}
        found.append(record | {"score": round(float(scores.pop()), 5)})

    for i in range(1, int(rng.integers(4, 9))):
        crowded = float(rng.choice([0, 0.1, 0.2, 0.5, 0.8, 0.9, 1, round(float(rng.random()), 3)]))
        images.append({"id": i, "file_name": f"{i}.jpg", "width": 400, "height": 300, "crowdIndex": crowded})
        for _ in range(int(rng.integers(1, 6))):
            w, h = rng.uniform(40, 120, 2)
            x, y = rng.uniform(0, 250, 2)
            points = np.stack([x + rng.random(14) * w, y + rng.random(14) * h, rng.integers(0, 3, 14)], 1)
            if rng.random() < 0.1:
                points[:, 2] = 0
            points[points[:, 2] == 0] = 0
            points = np.round(points, 2)
            person = {"id": len(truth) + 1, "image_id": i, "category_id": 1, "iscrowd": 0}
            person |= {"bbox": np.round([x, y, w, h], 2).tolist(), "keypoints": points.ravel().tolist()}
            truth.append(person | {"num_keypoints": int((points[:, 2] > 0).sum())})
            for _ in range(int(rng.integers(0, 4))):
                moved = points.copy()
                moved[:, :2] = np.round(moved[:, :2] + rng.normal(0, rng.choice([2, 6, 15]), (14, 2)), 2)
                moved[:, 2] = 1
                add(i, moved)
        for _ in range(int(rng.integers(0, 3))):
            add(i, np.round(np.stack([rng.uniform(0, 300, 14), rng.uniform(0, 200, 14), np.ones(14)], 1), 2))
    return {"images": images, "annotations": truth, "categories": [{"id": 1, "name": "person"}]}, found


def drawn_streets(seed: int) -> list[tuple[str, str]]:
    """Draw labels and results of images, as texts of KITTI's files."""
    rng = np.random.default_rng(seed)
    kinds = ["Car", "Car", "Car", "Pedestrian", "Pedestrian", "Cyclist", "Van", "Person_sitting", "Truck", "DontCare"]
    judged = ["Car", "Pedestrian", "Cyclist"]
    scores = list(rng.permutation(9000) / 9000 + 0.00005)

    def drawn_box() -> Array:
        x, y = rng.uniform(0, 300, 2)
        h = rng.uniform(15, 90)
        w = h * rng.uniform(0.5, 2)
        return np.round([x, y, x + w, y + h], 2)

    texts = []
    for _ in range(int(rng.integers(3, 30))):
        truth, found = [], []
        for _ in range(int(rng.integers(1, 9))):
            kind = str(rng.choice(kinds))
            box = drawn_box()
            cut = float(rng.choice([0, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6])) if rng.random() < 0.5 else 0.0
            hidden = int(rng.integers(0, 4)) if rng.random() < 0.5 else 0
            truth.append(f"{kind} {cut} {hidden} 0 {' '.join(map(str, box.tolist()))} 1.5 1.6 3.9 2 1.5 20 1.6\n")
            for _ in range(int(rng.integers(0, 4))):
                moved = np.round(box + rng.normal(0, rng.choice([1, 3, 8]), 4), 2)
                if moved[2] <= moved[0] + 1 or moved[3] <= moved[1] + 1:
                    continue
                same = rng.random() < 0.85 and kind != "DontCare"
                found.append((kind if same else str(rng.choice(judged)), moved, round(float(scores.pop()), 5)))
        for _ in range(int(rng.integers(0, 4))):
            other = drawn_box()
            found.append((str(rng.choice(judged)), other, round(float(scores.pop()), 5)))
        lines = [
            f"{kind} -1 -1 -10 {' '.join(map(str, box.tolist()))} -1 -1 -1 -1000 -1000 -1000 -10 {score}\n"
            for kind, box, score in found
        ]
        texts.append(("".join(truth), "".join(lines)))
    return texts


Faces = dict[str, dict[str, tuple[list[list[int]], list[list[int]], list[list[float]]]]]


def drawn_faces(seed: int) -> Faces:
    """Draw faces, which of them are easy, medium and hard, counted from 1, and detections, by event and image."""
    rng = np.random.default_rng(seed)
    scores = list(rng.permutation(90000) / 90000 * 0.98 + 0.005)
    events: Faces = {}
    for event in range(int(rng.integers(1, 4))):
        images = events.setdefault(f"{event}--Event", {})
        for place in range(int(rng.integers(1, 5))):
            n = int(rng.integers(0, 8)) if rng.random() < 0.85 else 0
            faces = np.concatenate([rng.integers(0, 200, (n, 2)), rng.integers(4, 60, (n, 2))], 1)
            if n > 2:
                faces[1] = faces[0] + np.array([2, 1, 3, 0])
            level = rng.integers(0, 4, n)
            lists = [(np.flatnonzero(level <= k) + 1).tolist() for k in range(3)]
            boxes = []
            for face in faces:
                for _ in range(int(rng.integers(0, 4))):
                    moved = np.round(face + rng.normal(0, rng.choice([1, 3, 8]), 4), 1)
                    moved[2:] = np.maximum(moved[2:], 1)
                    boxes.append(moved)
            n_others = int(rng.integers(0, 5))
            boxes += [np.round([*rng.uniform(0, 200, 2), *rng.uniform(4, 60, 2)], 1) for _ in range(n_others)]
            found = [[*map(float, box), round(float(scores.pop()), 6)] for box in boxes]
            images[f"{event}_x_{place}"] = faces.tolist(), lists, found
    return events


def drawn_skeletons(seed: int, n_points: int) -> tuple[dict[str, object], list[dict[str, object]]]:
    """Draw poses of so many points, with areas and crowds, and detections of them: ground truth and results of COCO."""
    rng = np.random.default_rng(seed)
    scores = rng.permutation(5000) / 5000
    images = [{"id": number, "width": 640, "height": 480} for number in range(1, int(rng.integers(2, 6)))]
    truth: list[dict[str, object]] = []
    found: list[dict[str, object]] = []
    for image in images:
        for _ in range(int(rng.integers(1, 5))):
            x, y, w, h = [*rng.integers(0, 300, 2).tolist(), *rng.integers(20, 200, 2).tolist()]
            points = np.column_stack((rng.uniform(x, x + w, n_points), rng.uniform(y, y + h, n_points)))
            seen = rng.integers(0, 3, n_points) if rng.random() < 0.9 else np.zeros(n_points, dtype=np.int64)
            pose = np.column_stack((np.round(points, 1), seen))
            truth.append(
                {
                    "id": len(truth) + 1,
                    "image_id": image["id"],
                    "category_id": 1,
                    "bbox": [x, y, w, h],
                    "area": int(w * h * rng.uniform(0.3, 1)),
                    "iscrowd": int(rng.random() < 0.1),
                    "keypoints": pose.ravel().tolist(),
                    "num_keypoints": int(np.count_nonzero(seen)),
                }
            )
            for _ in range(int(rng.integers(1, 4))):
                moved = np.round(points + rng.normal(0, rng.choice([0.5, 2, 6, 20]), points.shape), 1)
                given = np.column_stack((moved, np.ones(n_points))).ravel().tolist()
                score = float(scores[len(found)])
                low, high = moved.min(axis=0), moved.max(axis=0)
                box = [*low.tolist(), *(high - low).tolist()]
                row = {"image_id": image["id"], "category_id": 1, "bbox": box, "keypoints": given, "score": score}
                found.append(row)
    return {"images": images, "annotations": truth, "categories": [{"id": 1, "name": "body"}]}, found


def drawn_pedestrians(seed: int) -> tuple[dict[str, object], list[dict[str, object]]]:
    """Draw pedestrians on so many images that a false positive is within the lowest rate, as COCO's files."""
    rng = np.random.default_rng(seed)
    scores = rng.permutation(9000) / 9000
    images = [{"id": number, "width": 2048, "height": 1024} for number in range(1, int(rng.integers(105, 130)))]
    truth: list[dict[str, object]] = []
    found: list[dict[str, object]] = []
    for image in images:
        for _ in range(int(rng.integers(0, 4))):
            height = int(rng.choice([15, 20, 30, 40, 49, 50, 60, 75, 76, 94, 120, 200]))
            box = [int(rng.integers(0, 300)), int(rng.integers(0, 100)), max(int(height * 0.41), 1), height]
            visible = float(rng.choice([0.1, 0.2, 0.4, 0.65, 0.8, 1]))
            row = {"id": len(truth) + 1, "image_id": image["id"], "category_id": 1, "iscrowd": 0, "bbox": box}
            truth.append(row | {"ignore": int(rng.random() < 0.15), "height": height, "vis_ratio": visible})
            for _ in range(int(rng.choice([0, 0, 1, 1, 1, 2]))):
                moved = np.round(np.array(box) + rng.normal(0, rng.choice([0.5, 3, 8]), 4), 1)
                moved[2:] = np.maximum(moved[2:], 3)
                found.append({"image_id": image["id"], "category_id": 1, "bbox": moved.tolist()})
        if rng.random() < 0.3:
            height = float(rng.choice([39.9, 40, 50, 93.7, 93.8, 130]))
            other = [float(rng.integers(0, 300)), float(rng.integers(0, 100)), round(height * 0.41, 1), height]
            found.append({"image_id": image["id"], "category_id": 1, "bbox": other})
    found = [row | {"score": float(score)} for row, score in zip(found, scores, strict=False)]
    return {"images": images, "annotations": truth, "categories": [{"id": 1, "name": "pedestrian"}]}, found


InstanceMaps = list[tuple[Array, list[tuple[Array, int, float]]]]


def drawn_instances(seed: int) -> InstanceMaps:
    """Draw maps of instances as Cityscapes has them, and of each image masks with a class and a score."""
    rng = np.random.default_rng(seed)
    images: InstanceMaps = []
    for _ in range(int(rng.integers(3, 8))):
        ids = np.full((60, 90), int(rng.choice([7, 21])), dtype=np.int32)
        found: list[tuple[Array, int, float]] = []
        for place in range(int(rng.integers(2, 9))):
            label = int(rng.choice([24, 26, 26, 33]))
            kind = rng.random()
            number = label if kind < 0.15 else int(rng.choice([0, 4, 6, 18])) if kind < 0.3 else label * 1000 + place
            x, y = int(rng.integers(0, 75)), int(rng.integers(0, 45))
            w, h = (int(side) for side in rng.choice([5, 8, 12, 18, 25], 2))
            ids[y : y + h, x : x + w] = number
            for _ in range(int(rng.integers(0, 3))):
                mask = np.zeros(ids.shape, dtype=np.bool_)
                dx, dy, dw, dh = rng.integers(-2, 3, 4).tolist()
                mask[max(y + dy, 0) : max(y + h + dh, 1), max(x + dx, 0) : max(x + w + dw, 1)] = True
                given = label if rng.random() < 0.85 else int(rng.choice([24, 26, 33]))
                found.append((mask, given, round(float(rng.integers(1, 40)) / 40, 3)))
        images.append((ids, [one for one in found if one[0].any()]))
    return images


Words = list[tuple[str, str]]


def drawn_words(seed: int) -> Words:
    """Draw words of images as ICDAR has them, quadrilaterals with a text or ###, and detections with scores."""
    rng = np.random.default_rng(seed)
    scores = rng.permutation(9000) / 9000
    texts: Words = []
    n_found = 0
    for _ in range(int(rng.integers(2, 6))):
        words, lines = [], []
        for _ in range(int(rng.integers(1, 7))):
            x, y, w, h = [*rng.integers(0, 120, 2).tolist(), *rng.integers(10, 60, 2).tolist()]
            corners = np.array([[x, y], [x + w, y], [x + w, y + h], [x, y + h]])
            corners = np.maximum(corners + rng.integers(-2, 3, (4, 2)), 0)
            words.append(",".join(map(str, corners.ravel().tolist())) + (",###" if rng.random() < 0.25 else ",WORD"))
            for _ in range(int(rng.integers(0, 4))):
                moved = np.maximum(corners + rng.integers(-4, 5, 2) + rng.integers(-2, 3, (4, 2)), 0)
                lines.append(",".join(map(str, moved.ravel().tolist())) + f",{scores[n_found]:.6f}")
                n_found += 1
        texts.append(("\n".join(words), "\n".join([lines[at] for at in rng.permutation(len(lines))])))
    return texts


Tables = list[tuple[str, str]]


def drawn_tables(seed: int) -> Tables:
    """Draw tables of pages as cTDaR has them, quadrilaterals in XML, and those that were found."""
    rng = np.random.default_rng(seed)
    pages: Tables = []

    def document(outlines: list[Array]) -> str:
        points = [" ".join(f"{x},{y}" for x, y in outline.tolist()) for outline in outlines]
        tables = "".join(f'<table id="{n}"><Coords points="{text}"/></table>' for n, text in enumerate(points, 1))
        return f'<document filename="page.jpg">{tables}</document>'

    for _ in range(int(rng.integers(2, 7))):
        own, found = [], []
        for _ in range(int(rng.integers(0, 5))):
            x, y, w, h = [*rng.integers(10, 300, 2).tolist(), *rng.integers(40, 200, 2).tolist()]
            corners = np.array([[x, y], [x, y + h], [x + w, y + h], [x + w, y]]) + rng.integers(-3, 4, (4, 2))
            own.append(corners)
            # Some tables lie so near that a detection reaches two of them.
            if rng.random() < 0.3:
                own.append(corners + rng.integers(0, 12, 2))
            moved = rng.integers(-9, 10, (int(rng.integers(0, 4)), 1, 2))
            found.extend(corners + moved + rng.integers(-3, 4, (len(moved), 4, 2)))
        order = rng.permutation(len(found))
        pages.append((document(own), document([found[at] for at in order])))
    return pages


Heads = list[tuple[list[tuple[int, ...]], list[tuple[int, int]]]]  # of each image: those of ground truth, and points


def drawn_heads(seed: int) -> Heads:
    """Draw images of heads in crowds, some without any, each x, y, half a side, half a diagonal and a level; points."""
    rng = np.random.default_rng(seed)
    images: Heads = []
    for _ in range(int(rng.integers(2, 9))):
        n, spread = int(rng.integers(0, 30)), int(rng.choice([15, 40, 120]))
        heads: list[tuple[int, ...]] = []
        points: list[tuple[int, int]] = []
        for x, y in rng.integers(0, spread, (n, 2)).tolist():
            side = int(rng.integers(1, 8))
            heads.append((x, y, side, side + int(rng.integers(0, 6)), int(rng.integers(0, 6))))
            for _ in range(int(rng.integers(0, 3))):
                away = rng.normal(0, rng.choice([1, 4, 9]), 2).round().astype(int).tolist()
                points.append((x + away[0], y + away[1]))
        points += [(x, y) for x, y in rng.integers(0, spread, (int(rng.integers(0, 5)), 2)).tolist()]
        images.append((heads, [points[row] for row in rng.permutation(len(points)).tolist()]))
    return images


def drawn_cells(seed: int) -> list[tuple[Array, Array]]:
    """Draw label images of cells, some without any, and of what was found: moved, torn, joined, missed, made up."""
    rng = np.random.default_rng(seed)
    images = []
    y, x = np.indices((48, 64))
    for _ in range(int(rng.integers(2, 7))):
        sides = np.zeros((2, 48, 64), dtype=np.uint16)
        for number in range(1, int(rng.integers(0, 14)) + 1):
            at, half = rng.integers(0, 60, 2), rng.integers(2, 9, 2)
            is_round = rng.random() < 0.5
            power = 2 if is_round else 20
            sides[0][np.abs((y - at[0]) / half[0]) ** power + np.abs((x - at[1]) / half[1]) ** power < 1] = number
        moved = np.roll(sides[0], rng.integers(-1, 2, 2), axis=(0, 1))
        for number in np.unique(moved)[1:].tolist():
            of_it = moved == number
            fate = rng.random()
            if fate < 0.1:
                continue
            sides[1][of_it] = number
            if fate < 0.25:  # torn in halves
                sides[1][of_it & (np.cumsum(of_it).reshape(of_it.shape) > of_it.sum() // 2)] = number + 100
            elif fate < 0.35:
                sides[1][of_it] = max(number - 1, 1)
            elif fate < 0.5:
                sides[1][of_it & (rng.random(of_it.shape) < 0.3)] = 0
        if rng.random() < 0.4:
            top, left = rng.integers(0, 40, 2)
            sides[1][top : top + 6, left : left + 9] = 300
        images.append((sides[0], sides[1]))
    return images


# Points of each list that COCO-WholeBody has of a body.
BODY_LISTS = {"keypoints": 17, "foot_kpts": 6, "face_kpts": 68, "lefthand_kpts": 21, "righthand_kpts": 21}


def drawn_bodies(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw persons with lists of points, some of them or all unlabelled, and detections, as files of COCO-WholeBody."""
    rng = np.random.default_rng(seed)
    scores = list(rng.permutation(9000) / 9000 + 0.00005)
    truth: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    n_images = int(rng.integers(2, 7))
    for image in range(1, n_images + 1):
        for _ in range(int(rng.integers(1, 5))):
            x, y, w, h = rng.uniform(0, 300, 2).tolist() + rng.uniform(30, 200, 2).tolist()
            box = [round(value, 2) for value in (x, y, w, h)]
            lists = {}
            seen_at_all = rng.random() > 0.1
            for name, n in BODY_LISTS.items():
                points = np.stack([rng.uniform(x, x + w, n), rng.uniform(y, y + h, n)], 1).round(1)
                seen = rng.integers(0, 3, n) * (rng.random() > 0.3) * seen_at_all
                lists[name] = np.concatenate([points, seen[:, None]], 1)
            person = {"id": len(truth) + 1, "image_id": image, "category_id": 1, "bbox": box, "iscrowd": 0}
            person |= {"area": round(w * h * 0.6, 2), "num_keypoints": int((lists["keypoints"][:, 2] > 0).sum())}
            truth.append(person | {name: points.ravel().tolist() for name, points in lists.items()})
            for _ in range(int(rng.integers(0, 3))):
                spread = rng.choice([0.5, 2, 8])
                moved = {
                    name: np.concatenate(
                        [points[:, :2] + rng.normal(0, spread, (len(points), 2)).round(1), np.ones((len(points), 1))], 1
                    )
                    .round(1)
                    .ravel()
                    .tolist()
                    for name, points in lists.items()
                }
                found.append(
                    {"image_id": image, "category_id": 1, "score": round(float(scores.pop()), 5), "bbox": box, **moved}
                )
    images = [{"id": image, "width": 640, "height": 640} for image in range(1, n_images + 1)]
    return {"images": images, "annotations": truth, "categories": [{"id": 1, "name": "person"}]}, found
