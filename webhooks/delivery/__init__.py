"""Sends events to receivers: leases due deliveries, sends them outside of a transaction and records the results.

The worker calls `leases`, `sending` and `attempts`. They import endpoints and the queues of `library_site.jobs`.
"""
