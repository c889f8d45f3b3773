"""Contents of the pages that show statistics, and the links that share them."""
