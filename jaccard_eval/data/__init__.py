"""The data model: boxes, images, classes, protocols and results, and how two sides correspond."""
