"""The command line: one command group a file."""
