"""Sends events to receivers: leases deliveries that are due, sends each without a transaction, records the result.

The worker calls `leases`, `sending` and `attempts`. It imports endpoints and the queues of `library_site.jobs`.
"""
