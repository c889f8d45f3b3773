"""Notations and meanings of the cells of imported files: a module for each kind of cell.

A blank cell becomes None. An invalid one raises ValueError with the reason.
"""
