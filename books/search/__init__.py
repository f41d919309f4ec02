"""Finds books: by text, by typed or scanned codes, page by page, and with probably wrong values.

`texts` has the conditions that use the search index, `triggers` maintains that index, `sections` reads pages. It
imports the models, and writes nothing.
"""
