"""The API of books, for all versions: `views` for one book and lists, `bulk` and `operations` for many books.

Each version is a folder with its declarations. `compiled` answers common requests faster than the views; deleting it
changes no response. The API does not import the admin pages.
"""
