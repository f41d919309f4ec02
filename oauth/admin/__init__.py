"""The admin pages of this app. Django imports the package when it starts."""

from oauth.admin import api_keys, apps, users

__all__ = ["api_keys", "apps", "users"]
