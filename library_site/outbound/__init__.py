"""Requests to other servers: the allowed addresses, and a client that limits how much of a response it reads."""
