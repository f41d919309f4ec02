"""The pages for importing and exporting files."""
