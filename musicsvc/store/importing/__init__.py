"""Imports: files from other systems, read and validated row by row and written in batches."""
