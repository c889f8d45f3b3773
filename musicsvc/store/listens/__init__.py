"""Listens that players report: the tracks that they name, and those that wait for their track."""
