"""Parts of the ``npz`` format."""
