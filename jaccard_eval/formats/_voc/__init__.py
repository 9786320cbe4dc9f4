"""The parts of the Pascal VOC format: sources, annotations, results and the writer."""
