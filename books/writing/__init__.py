"""Writes books, each with its history and its event. Nothing else writes books.

Callers use `changes`, and `merging` for duplicates. `instances` implements `save` and `delete` of a book, `statements`
has the SQL for `changes`, `events` the kinds of events and their data, `signals` sends Django's signals, `id_sequence`
keeps ids unique. It imports the history, the fields of a book and the outbox, and nothing of the API or the admin.
"""
