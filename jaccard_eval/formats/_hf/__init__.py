"""Hugging Face data sets and outputs."""
