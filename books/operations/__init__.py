"""Work on many books, which a worker does in batches, and which users can cancel and undo.

`lifecycle` starts, cancels and undoes operations; `tasks` defines the kinds of operations, and `worker` runs them.
Tasks write books through `books.writing`. `books.files` registers its own tasks.
"""
