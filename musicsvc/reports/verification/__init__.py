"""Verification of exports: checksums over rows, and reading and comparing the rows of files (docs/exports.md)."""
