"""Which annotations are probably wrong, by the predictions."""
