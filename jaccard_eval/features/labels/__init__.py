"""Which annotations are probably wrong, by what predictions say about them."""
