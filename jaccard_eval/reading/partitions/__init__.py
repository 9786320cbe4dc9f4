"""A folder in which both sides of an evaluation lie in parts, whole images in each, as `partition` writes it.

``manifest.json`` holds all but images and boxes; ``images.parquet`` the images; ``gt/`` and ``pred/`` the boxes.
"""
