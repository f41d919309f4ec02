"""Reads untrusted files in a separate process with limits of time and memory.

A malicious file can take hours or gigabytes, or crash a parser. The process that reads it has no settings, credentials
or database: it requests the parts of the file, and sends the result. Callers use `client`, `reader` runs in the
process, and `messages` is the protocol between the two.
"""
