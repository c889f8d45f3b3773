"""Text for people: counts with their nouns, and control characters made visible."""


def quantity(number: int, singular: str, plural: str | None = None) -> str:
    """Return the number with its noun: `1 track`, `2,000 tracks`. The plural ends in `s` unless given."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def escape_controls(text: str) -> str:
    """Return the text with control characters escaped, so that no stored name can control the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
