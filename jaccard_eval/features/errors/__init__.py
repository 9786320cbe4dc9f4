"""What kinds of errors an evaluation has, and what each costs."""
