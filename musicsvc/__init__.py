"""A music catalog, playlist and creator-analytics API."""


def __getattr__(name: str) -> str:
    """Return the package version for `__version__`. It is read on first use, because reading it is slow."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow to load, seldom needed

        return version("musicsvc")
    raise AttributeError(name)
