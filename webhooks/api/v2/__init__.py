"""Webhooks, their deliveries and the stream of events in version 2. Later versions reuse it."""
