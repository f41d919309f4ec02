"""Requests to other servers: the addresses that they may reach, and a client that bounds what it reads of an answer."""
