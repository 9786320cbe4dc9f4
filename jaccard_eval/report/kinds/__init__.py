"""What is said about results, one module per kind, named after ``result.kind``; `_parts` holds what they share."""
