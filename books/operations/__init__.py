"""Work on many books, which a worker does in batches, and which can be cancelled and undone.

`lifecycle` begins, cancels and undoes; `tasks` says what a kind is made of, and `worker` runs it. It writes books by
`books.writing`; files register tasks of their own.
"""
