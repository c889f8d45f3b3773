"""A music catalog, playlist and creator-analytics API."""


def __getattr__(name: str) -> str:
    """Look up `__version__` on first use: the look-up is slow, and most commands do not need it."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow to load, seldom needed

        return version("musicsvc")
    raise AttributeError(name)
