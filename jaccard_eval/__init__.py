"""Evaluate object detection: any common format in, exact average precision out."""

__version__ = "0.1.0"
