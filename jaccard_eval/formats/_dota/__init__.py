"""The parts of the DOTA format: sources and reader."""
