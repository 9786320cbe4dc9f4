"""Label maps: images whose pixel values are classes. No format of boxes lives here."""
