"""The room of the rate limit: how many requests a caller made in its window.

Call `get_counter` (counters). It may import other rooms of `library_site.http` no more than they import it.
"""
