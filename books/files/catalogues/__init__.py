"""Asks the catalogues of other libraries about a book, by its ISBN.

`lookup` is for those who ask: it knows what was asked before. `servers` asks the catalogues that the setting names, and
`sru` reads what one of them answers.
"""
