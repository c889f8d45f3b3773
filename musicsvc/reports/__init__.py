"""Reports, export files and pictures, rendered to bytes for the server and the command line."""
