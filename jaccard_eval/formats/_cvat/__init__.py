"""The parts of the CVAT format."""
