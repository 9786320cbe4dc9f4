"""Parts of the format ultralytics."""
