"""What each image costs at the operating point, the worst first."""
