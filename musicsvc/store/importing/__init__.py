"""Imports: files from other systems are read and validated row by row, and written in batches."""
