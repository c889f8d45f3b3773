"""Environment variables. No other module reads the environment."""

import os

PREFIX = "MUSICSVC_"
DEMO_TOKEN, DEMO_PASSWORD = DEMO_VARIABLES = ("MUSICSVC_DEMO_TOKEN", "MUSICSVC_DEMO_PASSWORD")


def variables() -> dict[str, str]:
    """Map the upper-case name of each non-empty environment variable to its value. Settings' names ignore case."""
    return {name.upper(): value for name, value in os.environ.items() if value}  # noqa: TID251 - as documented above


def data_dir() -> str | None:
    """Return the variable that moves the data folder, in which the settings file is."""
    return os.environ.get(f"{PREFIX}DATA_DIR")  # noqa: TID251 - as documented above


def demo_secrets() -> dict[str, str]:
    """Return the variables that fix the secrets of the demo, by name."""
    return {name: value for name, value in variables().items() if name in DEMO_VARIABLES}


def notify_socket() -> str | None:
    """Return the socket of the service manager (sd_notify(3)), or None."""
    return os.environ.get("NOTIFY_SOCKET") or None  # noqa: TID251 - as documented above


def watchdog_seconds() -> float | None:
    """Return the seconds within which the service manager expects a message of this process again, or None."""
    given = os.environ  # noqa: TID251 - as documented above
    microseconds, pid = given.get("WATCHDOG_USEC", ""), given.get("WATCHDOG_PID", str(os.getpid()))
    return (
        int(microseconds) / 1e6 if microseconds.isdecimal() and pid == str(os.getpid()) and int(microseconds) else None
    )
