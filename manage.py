#!/usr/bin/env python
"""The operators' door: `manage.py help` lists the commands."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "library_site.settings")
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        # 128 and the number of SIGINT, as shells say it.
        sys.exit(130)
