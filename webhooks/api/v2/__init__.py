"""Webhooks, their deliveries and the stream of events in version 2. A later version serves the same."""
