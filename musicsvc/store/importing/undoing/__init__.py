"""Records of imports, and how an import is taken back."""
