"""The parts of the Pascal VOC format: annotations, results and the writer."""
