"""What the pages of figures show, and the links that share them."""
