"""Imports the modules that register pages. The admin imports this module with its URL patterns."""

from books.admin.book import model_admin

__all__ = ["model_admin"]
