"""Names of tracks, albums and artists as input of the report's template."""

from typing import Any

from musicsvc.reports import wrapping, writing

JSON = dict[str, Any]
LONGEST_NAME, LONGEST_SHORT = 90, 45  # graphemes
WORTH_KEEPING = 0.8  # share of a cut text that must remain to cut it between words
LONG_WORD = 22  # graphemes; longer words may be broken anywhere


def named(text: str, longest: int = LONGEST_NAME) -> JSON:
    """Return a name as input of the template: its text, cut to `longest` graphemes, and its language and direction."""
    shown = cut(writing.drawable(text), longest)
    length = len(writing.graphemes(shown))
    if any(len(writing.graphemes(word)) > LONG_WORD for word in shown.split(" ")):
        shown = wrapping.wrapping(shown).broken
    return {
        "text": shown,
        "rtl": writing.is_rtl(shown),
        "language": writing.language(shown),
        "tall": writing.is_tall(shown),
        "length": length,
    }


def cut(text: str, longest: int) -> str:
    """Return the text with at most `longest` graphemes; a longer one ends in an ellipsis."""
    signs = writing.graphemes(text)
    if len(signs) <= longest:
        return text
    kept = "".join(signs[: longest - 1])
    whole = kept.rpartition(" ")[0]
    return (whole if len(whole) > len(kept) * WORTH_KEEPING else kept).rstrip() + "…"
