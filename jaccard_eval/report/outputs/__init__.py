"""The outputs: one module per kind of file, found by listing this folder."""
