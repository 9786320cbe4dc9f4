"""The parts of the text label format: sources, lines, columns, encodings and boxes."""

DESCRIPTION_SUFFIXES = (".yaml", ".yml", ".data")  # of a file that describes a data set
