"""Reads files of strangers in a process of its own, with limits of time and memory.

A file can be made to take hours or gigabytes, or to crash a parser. The process that reads it has no settings, no
credentials and no database: it asks for the parts of the file, and sends what it read. `client` is for those who need
it, `reader` runs in the process, and `messages` is what both say.
"""
