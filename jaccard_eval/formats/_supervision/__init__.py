"""Parts of the format supervision."""
