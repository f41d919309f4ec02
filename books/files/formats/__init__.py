"""Readers and writers of files of books. `registry` lists them; `records` is what they read and write.

They know the members of a book, and neither models nor requests: a process without a database reads files by them.
"""
