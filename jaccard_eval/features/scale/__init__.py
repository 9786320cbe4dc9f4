"""What the size of objects does to the score, and how two boxes overlap."""
