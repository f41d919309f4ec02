"""The admin pages of this app. Django imports only this package, so it imports the modules."""

from oauth.admin import api_keys, apps, authorizations, users

__all__ = ["api_keys", "apps", "authorizations", "users"]
