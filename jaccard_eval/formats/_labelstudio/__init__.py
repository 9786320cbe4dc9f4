"""Parts of the format labelstudio."""
