"""JSON in general: which keys a document has, and values with their places."""
