"""What clients do with books, for all versions: `actions` for one book, `bulk` and `operations` for many.

`views` calls the actions for REST framework and `fast_routes` for the fast path; a version is a folder of what it
declares. It imports the rooms of books, and no page of the admin.
"""
