"""pycocotools for boxes, equal to the last bit; `jaccard_eval.pycocotools` has the public names."""
