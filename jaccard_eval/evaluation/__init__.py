"""From two inputs to a result: read, aligned, matched, measured."""
