"""What the cells of imported files mean: a module for each kind of cell.

A blank cell becomes None. An invalid one raises ValueError with the reason.
"""
