"""Intervals of metrics, by resampling the images."""
