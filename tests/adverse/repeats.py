"""Finds repeats in a pattern that cost more than the length of a text: in each other, side by side, or from each place.

A repeat that gives nothing back (`*+`) is harmless beside another one, and so are repeats that share no character.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from re import _constants as ops
from re import _parser
from typing import Any

SAMPLE = [*map(chr, range(256)), *"ßİıŁ–—…中あ가กअش\u0301\u0316\u200d\ufe0f\U0001f3b5"]
EVERY = frozenset(SAMPLE)
LONG = 100  # repeats of at most this many count as one character
CATEGORIES = {
    ops.CATEGORY_DIGIT: str.isdigit,
    ops.CATEGORY_SPACE: str.isspace,
    ops.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
}
NEGATED = {
    ops.CATEGORY_NOT_DIGIT: ops.CATEGORY_DIGIT,
    ops.CATEGORY_NOT_SPACE: ops.CATEGORY_SPACE,
    ops.CATEGORY_NOT_WORD: ops.CATEGORY_WORD,
}
REPEATS = {ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT}
ASSERTIONS = {ops.ASSERT, ops.ASSERT_NOT}
Item = tuple[Any, Any]
Chars = frozenset[str]


def faults(pattern: str, flags: int = 0, *, searched: bool = True) -> list[str]:
    """Return what is wrong with a pattern. `searched`: it is looked for at each place of a text."""
    tree = _parser.parse(pattern, flags)
    found = dict.fromkeys(_inside(list(tree), []))
    if searched and any(map(_starts_anew, _alternatives(list(tree)))):
        found["a search from each place"] = None
    return [f"{each} in {pattern}" for each in found]


def _inside(items: Sequence[Item], after: Sequence[Item]) -> Iterator[str]:
    """Yield the faults of these items, which `after` follow."""
    for place, item in enumerate(items):
        rest = [*items[place + 1 :], *after]
        if _is_long(item):
            body, chars = list(item[1][2]), _chars([item])
            if item[0] is not ops.POSSESSIVE_REPEAT:
                if any(_is_ambiguous(each) for each in _alternatives(body)):
                    yield "a repeat within a repeat"
                if any(_are_alike(each[1][1]) for each in _within(item) if each[0] is ops.BRANCH):
                    yield "alternatives that begin alike within a repeat"
                if _meets(chars, rest):
                    yield "two repeats side by side"
            yield from _inside(body, [*body, *rest])
        else:
            for part in _parts(item):
                yield from _inside(part, [] if item[0] in {*ASSERTIONS, ops.ATOMIC_GROUP} else rest)


def _is_ambiguous(body: Sequence[Item]) -> bool:
    """Return whether a text can be split between two turns of this repeated body in several ways."""
    for place, item in enumerate(body):
        inner = [each for each in _within(item) if _is_long(each) and each[0] is not ops.POSSESSIVE_REPEAT]
        others = [each for other, each in enumerate(body) if other != place]
        for repeat in inner:
            chars = _chars([repeat])
            if not any(not _nullable([each]) and not chars & _chars([each]) for each in others):
                return True
    return False


def _are_alike(branches: Sequence[Sequence[Item]]) -> bool:
    """Return whether a text can match several alternatives: both match nothing, or a character, or any number of it."""
    plain = [list(each) for each in branches if len(each) <= 1 or any(map(_is_long, each))]
    return any(
        _first(one) & _first(other) or (_nullable(one) and _nullable(other)) for one, other in combinations(plain, 2)
    )


def _meets(chars: Chars, rest: Sequence[Item]) -> bool:
    """Return whether a repeat may begin with one of these characters before anything that has none of them."""
    for item in rest:
        if _is_long(item):
            if chars & _first([item]):
                return True
        elif any(_meets(chars, part) for part in _parts(item)):
            return True
        if not _nullable([item]) and not chars & _chars([item]):
            return False
    return False


def _starts_anew(items: Sequence[Item]) -> bool:
    """Return whether a repeat contains a beginning of the pattern, and what follows may fail."""
    first = _first(items)
    flat = list(_flat(items))
    return any(
        _is_long(item) and bool(first & _chars([item])) and not _nullable(flat[place + 1 :])
        for place, item in enumerate(flat)
    )


def _flat(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items with those of groups in their place."""
    for item in items:
        if item[0] is ops.SUBPATTERN:
            yield from _flat(list(item[1][-1]))
        elif item[0] is ops.ATOMIC_GROUP:
            yield from _flat(list(item[1]))
        else:
            yield item


def _alternatives(items: Sequence[Item]) -> list[list[Item]]:
    """Return the alternatives of a pattern, in place of a pattern that is a branch."""
    flat = list(_flat(items))
    for place, item in enumerate(flat):
        if item[0] is ops.BRANCH:
            return [
                each for branch in item[1][1] for each in _alternatives([*flat[:place], *branch, *flat[place + 1 :]])
            ]
    return [flat]


def _is_long(item: Item) -> bool:
    return item[0] in REPEATS and (item[1][1] is ops.MAXREPEAT or item[1][1] > LONG)


def _within(item: Item) -> Iterator[Item]:
    yield item
    for part in _parts(item):
        for each in part:
            yield from _within(each)


def _parts(item: Item) -> list[list[Item]]:
    """Return the sequences that an item consists of."""
    kind, value = item
    if kind in REPEATS:
        return [list(value[2])]
    if kind is ops.SUBPATTERN or kind in ASSERTIONS:
        return [list(value[-1])]
    if kind is ops.ATOMIC_GROUP:
        return [list(value)]
    return [list(each) for each in value[1]] if kind is ops.BRANCH else []


def _chars(items: Sequence[Item]) -> Chars:
    """Return the characters that may be anywhere in what the items match."""
    return frozenset().union(*map(_of, items))


def _of(item: Item) -> Chars:
    kind, value = item
    if kind in ASSERTIONS or kind is ops.AT:
        return frozenset()
    if kind is ops.ANY or kind is ops.GROUPREF:
        return EVERY
    if kind is ops.LITERAL:
        return _cased({chr(value)})
    if kind is ops.NOT_LITERAL:
        return EVERY - {chr(value)}
    if kind is ops.IN:
        return _class(value)
    return frozenset().union(*map(_chars, _parts(item)))


def _cased(chars: set[str]) -> Chars:
    return frozenset(form for char in chars for form in (char, char.lower(), char.upper()))


def _class(members: Sequence[Item]) -> Chars:
    found: set[str] = set()
    for kind, value in members:
        if kind is ops.LITERAL:
            found.add(chr(value))
        elif kind is ops.RANGE:
            found |= {char for char in SAMPLE if value[0] <= ord(char) <= value[1]}
        elif kind is ops.CATEGORY:
            holds = CATEGORIES[NEGATED.get(value, value)]
            found |= {char for char in SAMPLE if holds(char) != (value in NEGATED)}
    negated = members[0][0] is ops.NEGATE
    return EVERY - found if negated else _cased(found)


def _nullable(items: Sequence[Item]) -> bool:
    """Return whether the items can match nothing, so that they never fail."""
    for kind, value in items:
        if kind is ops.BRANCH:
            if not any(_nullable(list(each)) for each in value[1]):
                return False
        elif kind in REPEATS:
            if value[0] and not _nullable(list(value[2])):
                return False
        elif kind in {ops.SUBPATTERN, ops.ATOMIC_GROUP}:
            if not _nullable(list(value[-1] if kind is ops.SUBPATTERN else value)):
                return False
        else:
            return False
    return True


def _first(items: Sequence[Item]) -> Chars:
    """Return the characters with which the items may begin."""
    found: set[str] = set()
    for item in items:
        kind, value = item
        if kind is ops.AT and value in {ops.AT_BEGINNING, ops.AT_BEGINNING_STRING}:
            return frozenset()  # at one place only
        if kind in ASSERTIONS or kind is ops.AT:
            continue
        parts = _parts(item)
        found |= frozenset().union(*map(_first, parts)) if parts else _of(item)
        if not _nullable([item]):
            break
    return frozenset(found)


def compiled_faults(pattern: re.Pattern[Any], *, searched: bool) -> list[str]:
    """Return what is wrong with a compiled pattern."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    return faults(text, pattern.flags & ~re.UNICODE, searched=searched)
