"""Backups: what is recorded of them, which are kept, and how one is proven whole.

`manage.py back_up` calls these modules. They import nothing of the other rooms but the database.
"""
