"""The pages of this app in the admin; Django imports this package alone."""

from oauth.admin import api_keys, apps, authorizations, users

__all__ = ["api_keys", "apps", "authorizations", "users"]
