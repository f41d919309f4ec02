"""Version 2: what it shows and accepts (`serializers`), its views, addresses and documents.

A later version inherits from it: docs/recipes/version.md.
"""
