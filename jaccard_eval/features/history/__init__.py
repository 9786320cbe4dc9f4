"""Saved evaluations in their order: how metric and classes moved from run to run."""
