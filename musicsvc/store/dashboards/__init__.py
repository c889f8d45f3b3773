"""Contents of the pages that show figures, and the links that share them."""
