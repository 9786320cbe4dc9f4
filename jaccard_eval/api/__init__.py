"""The library's verbs; `jaccard_eval` exports each from the module of its subject."""
