"""The parts of the text label format: sources, lines, columns, encodings and boxes."""
