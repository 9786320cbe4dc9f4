"""Counts at every step of a score threshold: what the slider of a page moves along."""
