"""Parts of reading label maps: pictures whose pixel values are classes. No format of boxes lives here."""
