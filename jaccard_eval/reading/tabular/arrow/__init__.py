"""Parts of the ``parquet`` and ``arrow`` formats, which hold the same tables; looking at one loads no pyarrow."""
