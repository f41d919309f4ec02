"""Work that is done later, by one worker at a time: rows under a lease, when to try again, what a worker does when the
database fails, errors that are stored, and expired rows.

It knows no queue: the apps pass their models.
"""
