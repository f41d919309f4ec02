"""Background work: leases of rows, retries, what a worker does when the database fails, stored errors, and expired
rows.

The queues are models of the apps.
"""
