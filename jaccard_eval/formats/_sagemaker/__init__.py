"""Parts of the format sagemaker."""
