"""Where work runs: one ``map(task, partitions)`` per kind of worker. No task is defined here."""
