import os

collect_ignore = [] if os.environ.get("LIBRARY_IMAGE") else ["test_image.py"]
