"""Version 2 of the API: its serializers, views, addresses and documents.

A later version inherits from it: docs/recipes/version.md.
"""
