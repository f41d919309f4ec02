"""Who changed which book, and its earlier states.

`records` writes the rows for `books.writing`, `change_pages` reads pages of them, `states` computes earlier states of a
book, and `actors` finds the actor of a change. It imports the models, and nothing that writes books.
"""
