"""What formats share: opening files, and filling a draft of one side."""
