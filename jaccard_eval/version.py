"""The version, below everything that prints or records it."""

__version__ = "0.2.0"
