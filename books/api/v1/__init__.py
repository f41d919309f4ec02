"""Version 1: the contract (specification, Sections 2-4). It inherits nothing and does not change."""
