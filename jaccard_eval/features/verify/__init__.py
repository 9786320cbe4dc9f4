"""Whether a saved evaluation comes out the same again."""
