"""Imports the modules that register pages: the admin imports this one with the URL patterns."""

from books.admin.book import model_admin

__all__ = ["model_admin"]
