"""Environment variables. No other module reads the environment."""

import os

PREFIX = "MUSICSVC_"
DEMO_SECRETS = ("demo_token", "demo_password")
DEMO_VARIABLES = [f"{PREFIX}{name.upper()}{end}" for name in DEMO_SECRETS for end in ("", "_FILE")]


def variables() -> dict[str, str]:
    """Map the upper-case name of each non-empty environment variable to its value. Settings' names ignore case."""
    return {name.upper(): value for name, value in os.environ.items() if value}  # noqa: TID251 - as documented above


def data_dir() -> str | None:
    """Return the variable that moves the data folder, in which the settings file is."""
    return os.environ.get(f"{PREFIX}DATA_DIR")  # noqa: TID251 - as documented above


def credentials_folder() -> str | None:
    """Return the folder with the credentials of the service (systemd), or None."""
    return os.environ.get("CREDENTIALS_DIRECTORY") or None  # noqa: TID251 - as documented above


def temporary_folder() -> str | None:
    """Return the variable that moves the folder for temporary files, or None."""
    return os.environ.get("TMPDIR") or None  # noqa: TID251 - as documented above


def set_temporary_folder(folder: str) -> None:
    """Move the folder for temporary files of libraries and of child processes."""
    os.environ.update(TMPDIR=folder, SQLITE_TMPDIR=folder)  # noqa: TID251 - as documented above


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
