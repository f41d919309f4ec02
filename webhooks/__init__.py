"""Webhooks: sends events and receives them. It imports oauth and library_site; books registers kinds and handlers."""
