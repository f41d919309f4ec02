"""Backups: making a copy, verifying it, recording its time, and deleting old ones.

`manage.py back_up` calls these modules. Of the library they import only the database package.
"""
