"""What comes with a table of Open Images: names of classes, the hierarchy, image-level labels."""
