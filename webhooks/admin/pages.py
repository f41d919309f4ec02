"""Imports the modules that register pages: the admin imports this one with the URL patterns."""

from webhooks.admin import deliveries, endpoints, sources

__all__ = ["deliveries", "endpoints", "sources"]
