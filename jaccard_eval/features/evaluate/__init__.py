"""What reports say about an evaluation, with all of its parts."""
