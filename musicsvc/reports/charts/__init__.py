"""Graphs and tables of the PDF report: scales and axes, dates and names as text."""
