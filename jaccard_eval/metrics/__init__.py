"""Numbers computed from a match table."""
