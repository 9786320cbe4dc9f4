"""What is wrong with an input: checks that name a mistake, its evidence and its fix."""
