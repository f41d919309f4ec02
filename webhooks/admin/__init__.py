"""The admin pages of this app. Django imports the package when it starts."""

from webhooks.admin import deliveries, endpoints, sources

__all__ = ["deliveries", "endpoints", "sources"]
