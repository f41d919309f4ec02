"""Books in files: uploads, imports, exports, and seeds.

A record of a file becomes a book in three steps: `formats` reads it, `parsing` takes the values of a book from it, by
what `columns` knows of the tables of other programs, and `matching` says what becomes of it and writes it.
`import_tasks` and `export_tasks` are what a worker does with a file, `import_operations` begins that, and `downloads`
sends one. A file of a stranger is read in `sandbox`.
"""
