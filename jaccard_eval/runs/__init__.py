"""Saved results and runs: written, recognised and read."""
