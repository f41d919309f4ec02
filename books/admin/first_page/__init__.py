"""The first page of the admin: numbers of books, charts and the latest changes."""
