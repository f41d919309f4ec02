"""The room of the rate limit: how many requests a caller made in its window.

Call `get_counter` (counters). It imports no other room.
"""
