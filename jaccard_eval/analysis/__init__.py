"""What a result means: audits, comparisons, gates."""
