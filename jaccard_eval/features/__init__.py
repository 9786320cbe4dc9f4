"""What users name: one folder per feature, with its results, what computes them and what reports say about them."""
