"""The pages of this app in the admin."""

from oauth.admin import apps, users

__all__ = ["apps", "users"]
