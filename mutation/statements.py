"""Breaks of statements: removed ones, and other return values; and breaks of SQL."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from mutation.operators import Change
from mutation.source import is_quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mutation.source import Place, Source

SETTERS = {"__init__", "__new__", "__post_init__"}  # without the attribute every reader fails
RETURNED = (
    (r"bool", "not ({})"),
    (r"int|float", "({}) + 1"),
    (r"str|bytes", "({})[1:]"),
    (r"(list|List|Sequence|tuple)\[.*", "({})[1:]"),
    (r"dict\[.*", "{{}}"),
    (r"set\[.*", "set()"),
    (r".*\bNone", "None"),
)
SQL = re.compile(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE|JOIN|ORDER BY|GROUP BY|ON CONFLICT)\b")
TOKENS: tuple[tuple[str, str], ...] = (
    (r" DESC\b", " ASC"),
    (r" ASC\b", " DESC"),
    (r"\bAND\b", "OR"),
    (r"\bOR\b", "AND"),
    (r"<>", "="),
    (r"(?<![<>])=", "<>"),
    (r"<(?![=>])", "<="),
    (r"<=", "<"),
    (r"(?<!<)>(?!=)", ">="),
    (r">=", ">"),
    (r"\bLEFT JOIN\b", "JOIN"),
    (r"\bMAX\(", "MIN("),
    (r"\bMIN\(", "MAX("),
    (r"\bSUM\(", "MAX("),
    (r"\bCOUNT\(DISTINCT ", "COUNT("),
    (r"\bSELECT DISTINCT\b", "SELECT"),
    (r"\bNOT (EXISTS|IN)\b", r"\1"),
    (r"(?<!NOT )\bEXISTS\b", "NOT EXISTS"),
    (r"\bIS NOT NULL\b", "IS NULL"),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r"\bUNION ALL\b", "UNION"),
)
ASSIGNING = re.compile(r"\b(SET|WHERE|ON|AND|OR|WHEN|SELECT|HAVING)\b")
BRACES = re.compile(r"\{[^{}]*\}")


def removal(source: Source, place: Place) -> Iterator[Change]:
    """Remove a statement that does something."""
    node = place.node
    if isinstance(node, ast.stmt) and _acts(node, place.function.rpartition(".")[2]):
        yield Change("removed statement", source.span(node), "pass")


def _acts(node: ast.stmt, function: str) -> bool:
    match node:
        case ast.Expr(value=ast.Call() as called) | ast.Expr(value=ast.Await(value=ast.Call() as called)):
            return not is_quiet(called)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return function not in SETTERS
        case ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Continue() | ast.Break() | ast.Return(value=None):
            return True
    return False


def returned(source: Source, place: Place) -> Iterator[Change]:
    """Return another value of the declared type."""
    node = place.node
    if isinstance(node, ast.Return) and node.value is not None and place.returns:
        for pattern, template in RETURNED:
            if re.fullmatch(pattern, place.returns.strip("\"'"), re.DOTALL):
                yield Change("return value", source.span(node.value), template.format(source.text(node.value)))
                break


def sql(source: Source, place: Place) -> Iterator[Change]:
    """Change one token of an SQL statement."""
    node = place.node
    if not (isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))):
        return
    text = source.text(node)
    if not SQL.search(text):
        return
    # The expressions of an f-string are Python.
    shown = BRACES.sub(lambda found: "\0" * len(found[0]), text)
    for pattern, new in TOKENS:
        for found in re.finditer(pattern, shown):
            if found[0] != "=" or not _assigns(shown[: found.start()]):
                start = source.span(node)[0] + len(text[: found.start()].encode())
                yield Change("SQL", (start, start + len(found[0].encode())), found.expand(new))


def _assigns(before: str) -> bool:
    """Whether the last word of SQL before an equals sign is SET."""
    words = ASSIGNING.findall(before)
    return bool(words) and words[-1] == "SET"


STATEMENTS: tuple[Callable[[Source, Place], Iterator[Change]], ...] = (removal, returned, sql)
