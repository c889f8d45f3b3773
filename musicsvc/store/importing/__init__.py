"""Import files from other systems: read and validate them row by row, and write the rows in batches."""
