"""The admin pages of this app; Django imports only this package."""

from webhooks.admin import deliveries, endpoints, sources

__all__ = ["deliveries", "endpoints", "sources"]
