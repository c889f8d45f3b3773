"""Render reports, export files and pictures to bytes, for the server and the command line."""
