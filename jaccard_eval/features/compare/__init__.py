"""Predictions compared with a baseline: differences of metrics, and what changed box by box."""
