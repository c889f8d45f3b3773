"""Imports and undos that accounts request on pages: their queue, the uploaded files, and the work itself."""
