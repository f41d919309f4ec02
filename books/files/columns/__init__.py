"""The tables of other programs: which column contains which field of a book, and how to parse its cells."""
