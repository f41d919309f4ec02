"""The admin pages of this app."""
