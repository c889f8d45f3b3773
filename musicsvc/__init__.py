"""A music catalog, playlist and creator-analytics API."""


def __getattr__(name: str) -> str:
    """`__version__`, looked up when it is asked for: most commands never do, and it takes a while."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow to load, seldom needed

        return version("musicsvc")
    raise AttributeError(name)
