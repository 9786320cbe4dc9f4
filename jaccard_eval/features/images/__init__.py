"""What each image costs at the operating point, the worst first."""

from jaccard_eval.features.images.result import WorstImages as WorstImages
