"""Both sides in parts by image, in one folder that is evaluated as they are."""
