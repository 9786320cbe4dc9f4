"""What a table of Open Images holds and what comes with it: masks, names of classes, hierarchy, image-level labels."""

from collections.abc import Sequence

MID_STARTS = ("/m/", "/g/", "/t/")  # machine-generated ids of the knowledge graph
# Columns of tables with masks, in lower case.
IMAGE = ("imageid", "id")  # submissions of later competitions have the second
BOXES = (("boxxmin", "boxxmax", "boxymin", "boxymax"), ("xmin", "xmax", "ymin", "ymax"))
SIZE = ("imagewidth", "imageheight")
FILE, CODE, STRING = "maskpath", "mask", "predictionstring"
_LAYOUTS = ({"labelname", FILE}, {"labelname", *SIZE, CODE}, {*SIZE, STRING})  # besides the image


def mask_kinds(header: Sequence[str]) -> set[str]:
    """Return what a table with masks can be compared by; nothing of a table without."""
    names = {name.strip().strip('"').lower() for name in header}
    if names.isdisjoint(IMAGE) or not any(names >= layout for layout in _LAYOUTS):
        return set()
    return {"segm", *("bbox" for sides in BOXES if names >= set(sides))}
