"""Proves the recipes of docs/recipes/.

`tests/served/library_site/test_recipes.py` runs these tests, in a copy of the tree in which the patches of the recipes
are applied.
"""
