"""The pages of this app in the admin."""

from webhooks.admin import base

__all__ = ["base"]
