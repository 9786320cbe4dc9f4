"""Parts of the format darknet."""
