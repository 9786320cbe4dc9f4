"""What comes with a table of Open Images: names of classes, the hierarchy, image-level labels."""

MID_STARTS = ("/m/", "/g/", "/t/")  # machine-generated ids of the knowledge graph
