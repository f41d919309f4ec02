"""Base classes and parts of the admin pages, and the site itself."""
