"""Contents of the pages of figures, and the links that share them."""
