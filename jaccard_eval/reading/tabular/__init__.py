"""The parts of the CSV format: rows, cells, columns, numbers and boxes."""
