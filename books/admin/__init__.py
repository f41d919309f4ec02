"""The admin pages of this app; Django imports only this package."""

from books.admin import books

__all__ = ["books"]
