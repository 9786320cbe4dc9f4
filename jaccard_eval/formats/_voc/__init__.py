"""The parts of the Pascal VOC format: sources, annotations, results and the writer."""

ROOT = "annotation"  # the outermost element of an annotation file
