"""Label maps: counts of pixels by class, and the scores from them."""
