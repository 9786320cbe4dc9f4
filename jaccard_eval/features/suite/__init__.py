"""Many models on many sets: their cells, means, ranks and groups."""
