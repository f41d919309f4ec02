"""The admin pages of this app. Django imports the package when it starts."""

from books.admin.pages import BookAdmin

__all__ = ["BookAdmin"]
