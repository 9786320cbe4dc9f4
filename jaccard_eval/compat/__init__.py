"""Other libraries' interfaces on top of this one; each in a package of that library's name."""
