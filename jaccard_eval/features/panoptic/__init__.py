"""Panoptic segmentations: segments of things and stuff, matched by their pixels, and panoptic quality (PQ)."""
