"""Parts of the format torchvision."""
