"""Overlaps of oriented boxes with shapely: `GT DT` gives how many pairs of an image and class reach .5, as JSON.

It reads the files, pairs what can meet at all and intersects whole arrays; nothing is matched or averaged.
"""

import json
import sys
from pathlib import Path

import numpy as np
import shapely

gt, dt = (json.loads(Path(path).read_bytes()) for path in sys.argv[1:])
sides = []
for records in (gt["annotations"], dt):
    key = np.array([record["image_id"] * 1_000 + record["category_id"] for record in records])
    corners = np.array([record["bbox"] for record in records]).reshape(-1, 4, 2)
    order = np.argsort(key, kind="stable")
    sides.append((key[order], corners[order], corners[order].min(axis=1), corners[order].max(axis=1)))
(gt_key, gt_corners, gt_low, gt_high), (dt_key, dt_corners, dt_low, dt_high) = sides
start, stop = (np.searchsorted(gt_key, dt_key, side) for side in ("left", "right"))
size = stop - start
i = np.repeat(np.arange(len(dt_key)), size)
j = np.arange(len(i)) + np.repeat(start - (np.cumsum(size) - size), size)
meets = ((dt_low[i] < gt_high[j]) & (gt_low[j] < dt_high[i])).all(axis=1)
i, j = i[meets], j[meets]
one, other = shapely.polygons(dt_corners), shapely.polygons(gt_corners)
shared = shapely.area(shapely.intersection(one[i], other[j]))
overlap = shared / (shapely.area(one)[i] + shapely.area(other)[j] - shared)
print(json.dumps([int(np.count_nonzero(overlap >= 0.5))]))
