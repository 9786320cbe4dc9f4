"""Pairing detections with ground truth, once, into one match table."""
