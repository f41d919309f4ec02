"""Imports the modules that register pages: the admin imports this one with the URL patterns."""

from books.admin import books

__all__ = ["books"]
