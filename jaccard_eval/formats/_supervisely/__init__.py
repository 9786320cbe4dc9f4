"""Parts of the format supervisely."""
