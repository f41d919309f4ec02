"""Looks up a book in the catalogues of other libraries by its ISBN.

Callers use `lookup`, which caches results. `sru` sends requests to the catalogues of the setting, and parses their
responses.
"""
