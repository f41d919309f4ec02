"""The pages of this app in the admin; Django imports this package alone."""

from webhooks.admin import deliveries, endpoints, sources

__all__ = ["deliveries", "endpoints", "sources"]
