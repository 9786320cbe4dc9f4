"""What inputs hold, and how two of them correspond."""
