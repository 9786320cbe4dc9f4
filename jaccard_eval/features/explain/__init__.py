"""Why a number is what it is: the boxes that cost most, and what other rules make of it."""
