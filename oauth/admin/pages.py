"""Imports the modules that register pages: the admin imports this one with the URL patterns."""

from oauth.admin import api_keys, apps, authorizations, users

__all__ = ["api_keys", "apps", "authorizations", "users"]
