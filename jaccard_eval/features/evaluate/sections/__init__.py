"""The sections of the page of an evaluation: one module each, found by listing this folder.

A module has `PLACE`, where it stands among the others, and `build_sections(result, options)`, which returns its
sections, none where there is nothing to show. The template that bears the key of a section draws it.
"""
