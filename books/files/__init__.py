"""Books in files: uploads, imports, exports and seeds.

An import turns a record into a book in three steps: `formats` reads the record, `parsing` takes the values of a book
from it (`columns` knows the tables of other programs), and `matching` compares it with the library and writes it.
`import_tasks` and `export_tasks` run in a worker, `import_operations` starts them, and `exports` sends files.
`reader` reads untrusted files.
"""
