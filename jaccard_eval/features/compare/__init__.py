"""Predictions beside a baseline: differences of metrics, and what changed box by box."""
