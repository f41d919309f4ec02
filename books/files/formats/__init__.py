"""Readers and writers of files of books. `registry` lists the formats; `records` has the types that all of them use.

They know the fields of a book, but not models or requests: the reader process has no database.
"""
