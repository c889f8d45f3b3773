"""A music catalog, playlist and creator-analytics API."""

from importlib.metadata import version

__version__ = version("musicsvc")
