"""How a database is called in a message."""

import re


def named(url: str) -> str:
    """The database in words: a SQLite file by its path, another one by its address without the password."""
    return f"The database {without_password(url.removeprefix('sqlite:///'))}"


def without_password(url: str) -> str:
    """The address with its password, in either place where it may stand, made unreadable."""
    url = re.sub(r"(?<=://)([^/@]*):[^/]*@", r"\1:***@", url)
    return re.sub(r"(?<=[?&])(password|sslpassword)=[^&]*", r"\1=***", url)
