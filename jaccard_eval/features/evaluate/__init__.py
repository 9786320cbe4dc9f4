"""Reports of an evaluation, with all of its parts."""
