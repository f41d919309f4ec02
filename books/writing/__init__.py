"""Writes books, each with its history and its event: nothing else does.

Others call `changes`, and `merging` for two books that are one. `instances` is what `save` and `delete` of a book do,
`statements` is the SQL below `changes`, `events` the kinds of events and their data, `signals` sends those of Django,
`id_sequence` keeps ids unique. It imports the history, the declaration of a book and the outbox, and nothing of the API
or the admin.
"""
