"""The parts of the COCO JSON format: records, columns, a quick and a tolerant reader."""
