"""Record imports, list them and undo them."""
