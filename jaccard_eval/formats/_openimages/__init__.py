"""The parts of the Open Images format: columns, reader and writer."""
