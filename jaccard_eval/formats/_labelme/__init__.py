"""Parts of the format labelme."""
