"""Parts of the format roboflow."""
