"""The members of a book that people and programs write, in the order in which files and pages show them.

Here is no model, because processes without settings read files, too. `tests/books/test_members.py` compares the other
lists of members with this one and the model, and names a list that lacks a member.
"""

MEMBERS = ("title", "author", "year", "isbn", "genre", "available")
