"""Parts of the format via."""
