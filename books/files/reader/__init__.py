"""Reads an untrusted file by a command with limits of time and memory: `python -m books.files.reader TASK`.

A malicious file can take hours or gigabytes, or crash a parser. The command has no settings, credentials or database:
the file is its standard input, and its output are lines of JSON. `client` starts it.
"""
