"""An input of any format, written in another."""
