"""Short descriptions of browsers, such as `Firefox on Linux`, for the list of an account's sessions."""

import re

# The first match counts: most browsers also name others.
BROWSERS = (
    (r"Edg(e|A|iOS)?/", "Edge"),
    (r"OPR/|Opera", "Opera"),
    (r"SamsungBrowser/", "Samsung Internet"),
    (r"Firefox/|FxiOS/", "Firefox"),
    (r"Chrom(e|ium)/|CriOS/", "Chrome"),
    (r"Safari/", "Safari"),
    (r"curl/", "curl"),
)
SYSTEMS = (
    (r"Android", "Android"),
    (r"iPhone|iPad", "iOS"),
    (r"Windows", "Windows"),
    (r"CrOS", "ChromeOS"),
    (r"Mac OS X|Macintosh", "macOS"),
    (r"Linux|X11", "Linux"),
)


def describe(agent: str) -> str:
    """Return browser and system of a User-Agent header, such as `Firefox on Linux`."""
    browser, system = (_first(agent, known) for known in (BROWSERS, SYSTEMS))
    return f"{browser or 'A browser'} on {system}" if system else browser or "An unknown browser"


def _first(agent: str, known: tuple[tuple[str, str], ...]) -> str | None:
    return next((name for pattern, name in known if re.search(pattern, agent)), None)
