"""The commands: one module each, found by listing this folder."""
