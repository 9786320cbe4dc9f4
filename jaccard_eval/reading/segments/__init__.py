"""Segmented images: which segments an image lists, of which class, and where the map of their ids lies."""
