"""Cut names, and find line breaks in titles: between words or phrases, within words only if necessary."""

import functools
import re
from dataclasses import dataclass

import budoux
import regex

from musicsvc.reports import writing
from musicsvc.reports.tables import JSON
from musicsvc.reports.writing import graphemes, may_be_spaced

BREAK = "\u200b"  # zero-width space: allows a line break
NO_BREAK = "\u2060"  # word joiner: forbids a line break
LONGEST_KEPT = 8  # graphemes; only longer words may be broken
LONGEST_CLUSTER = 12  # code points between two breaks: a chain of conjuncts can be one grapheme as long as the text
JOINED_STEP = 4  # graphemes; every break that is tried in a joining script costs another shaping
UNBROKEN_BLANK = "\u00a0"
THAI_RUN = 12  # graphemes; Typst ends lines between Thai words, but its dictionary can fail for a whole title

_LETTER = r"[\p{Latin}\p{Cyrillic}\p{Greek}]\p{M}*+"
# One or two words of one letter stay with the next word.
_SHORT = regex.compile(rf"(?<!\S)(?:{_LETTER} ){{1,2}}(?!{_LETTER}(?:\s|$))(?=[^\s\u2013\u2014])")
_DASH = regex.compile(r" ([\u2013\u2014]) ")  # stays at the end of a line
_IDEOGRAPHIC = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_THAI = regex.compile(r"\p{Thai}")
_NEVER_FIRST = regex.compile(
    r"[\p{Pe}\p{Pf}\p{Po}\p{M}\u200c\u200dー々〻ゝゞヽヾぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ]"
)
# Typst would end a line between ideographs, between syllables of Hangul, and between either of them and a letter.
_SYLLABLE = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]"
_LOOSE = regex.compile(rf"(?<={_SYLLABLE})(?=[^\s\p{{M}}])|(?<=[^\s\p{{M}}])(?={_SYLLABLE})")
LONGEST_NAME, LONGEST_SHORT = 90, 45  # graphemes
WORTH_KEEPING = 0.8  # share of a cut text that must remain to cut it between words
LONG_WORD = 22  # graphemes; longer words may be broken anywhere


def named(text: str, longest: int = LONGEST_NAME) -> JSON:
    """Return a name as input of the template: its text, cut to `longest` graphemes, and its language and direction."""
    shown = cut(writing.drawable(text), longest)
    length = len(graphemes(shown))
    if any(len(graphemes(word)) > LONG_WORD for word in shown.split(" ")):
        shown = wrapping(shown).broken
    return {
        "text": shown,
        "rtl": writing.is_rtl(shown),
        "language": writing.language(shown),
        "tall": writing.is_tall(shown),
        "length": length,
    }


def cut(text: str, longest: int) -> str:
    """Return the text with at most `longest` graphemes; a longer one ends in an ellipsis."""
    signs = graphemes(text)
    if len(signs) <= longest:
        return text
    kept = "".join(signs[: longest - 1])
    whole = kept.rpartition(" ")[0]
    return (whole if len(whole) > len(kept) * WORTH_KEEPING else kept).rstrip() + "…"


@dataclass(frozen=True)
class Wrapping:
    """A title with marked line breaks: in `text` only between words, in `broken` also within long words.

    `words`: the words of `text`. `kept`: the words inside which `broken` has no line breaks.
    """

    text: str
    words: list[str]
    broken: str
    kept: list[str]


def wrapping(text: str) -> Wrapping:
    """Mark the possible line breaks of `text`, which must not contain double spaces."""
    ideographs = "japanese" if _KANA.search(text) else "simplified_chinese"
    joined = _SHORT.sub(lambda match: match[0].replace(" ", UNBROKEN_BLANK), text)
    tokens = [_parts(token, ideographs) for token in _DASH.sub(f"{UNBROKEN_BLANK}\\1 ", joined).split(" ")]
    whole = [_runs(parts) for parts in tokens]
    return Wrapping(
        text=" ".join(BREAK.join(map(_glued, runs)) for runs in whole),
        words=list(dict.fromkeys(run for runs in whole for run in runs)),
        broken=" ".join(BREAK.join(map(_loosened, parts)) for parts in tokens),
        kept=list(dict.fromkeys(part for parts in tokens for part in parts if not _is_long(part))),
    )


@functools.cache
def _parser(language: str) -> budoux.Parser:
    return {
        "japanese": budoux.load_default_japanese_parser,
        "simplified_chinese": budoux.load_default_simplified_chinese_parser,
        "thai": budoux.load_default_thai_parser,
    }[language]()


def _parts(token: str, ideographs: str) -> list[str]:
    """Split Japanese or Chinese text into phrases, and Thai text into words. Return other text as one part."""
    script = _IDEOGRAPHIC if _IDEOGRAPHIC.search(token) else _THAI
    if not script.search(token):
        return [token]
    parts: list[str] = []
    for part in _parser("thai" if script is _THAI else ideographs).parse(token):
        if parts and (_NEVER_FIRST.match(part) or not script.search(parts[-1][-1] + part[0])):
            parts[-1] += part
        else:
            parts.append(part)
    return parts


def _runs(parts: list[str]) -> list[str]:
    """Join adjacent Thai words, because Typst finds better breaks in longer text. Other parts remain separate."""
    runs: list[str] = []
    for part in parts:
        if runs and _THAI.search(runs[-1]) and len(graphemes(runs[-1] + part)) <= THAI_RUN:
            runs[-1] += part
        else:
            runs.append(part)
    return runs


def _glued(word: str) -> str:
    return _LOOSE.sub(NO_BREAK, word)


def _loosened(word: str) -> str:
    """Mark breaks in a long word: after each grapheme, or after several in scripts with joined letters."""
    if not _is_long(word):
        return _glued(word)
    pieces = (re.findall(f"(?s).{{1,{LONGEST_CLUSTER}}}", cluster) for cluster in graphemes(word))
    signs = [piece for cluster in pieces for piece in cluster]
    step = 1 if may_be_spaced(word) else JOINED_STEP
    return BREAK.join("".join(signs[place : place + step]) for place in range(0, len(signs), step))


def _is_long(word: str) -> bool:
    return len(graphemes(word)) > LONGEST_KEPT
