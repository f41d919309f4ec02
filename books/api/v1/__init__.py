"""Version 1 of the API (specification, Sections 2-4). It inherits nothing and does not change."""
