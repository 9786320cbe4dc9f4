"""Tables whose cells have types, and rows of one image each whose objects are lists, as Hugging Face data sets have."""
