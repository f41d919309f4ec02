"""Finds books: by texts, by what was typed or scanned, page by page, and those that are probably wrong.

`texts` has the conditions that use the search index, `index` keeps that index, `sections` reads pages. It imports the
models, and writes nothing.
"""
