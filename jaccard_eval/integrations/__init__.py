"""Attach an evaluation to a framework's own loop, one module a framework; each imports its framework when called."""
