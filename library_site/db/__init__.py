"""Databases: connections, our own statements, pages by key, time limits, and SQLite's queue of writers.

`sql` runs statements, `keyset` reads pages. It imports nothing of the other rooms.
"""
