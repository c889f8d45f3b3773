"""Files of others' data: read row by row, checked, and put into the store in batches."""
