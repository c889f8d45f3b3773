"""Graphs and tables of the PDF report, and dates as text."""
