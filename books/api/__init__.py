"""What clients do with books, for all versions: `views` for one book and lists, `bulk` and `operations` for many.

A version is a folder of what it declares. `compiled` answers common requests in the place of the views, and may be
deleted. It imports the rooms of books, and no page of the admin.
"""
