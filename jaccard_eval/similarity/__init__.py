"""Pure kernels on arrays of boxes."""
