"""The rate limit: counts the requests of each caller in its window.

Call `get_counter` (counters). It imports no other room.
"""
