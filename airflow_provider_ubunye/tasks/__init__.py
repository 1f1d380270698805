"""Task folders: where they are, what their ``config.yaml`` says and the code in ``transformations.py``."""
