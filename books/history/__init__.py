"""Who changed which book, and what it was before.

`records` writes the rows for `books.writing`, `entries` reads pages of them, `states` computes what a book was, and
`actors` finds who changes. It imports the models, and nothing that writes books.
"""
