"""Suppression of overlapping predictions."""
