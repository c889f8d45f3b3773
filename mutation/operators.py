"""Breaks of expressions: operators, constants, conditions, arguments."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from mutation.source import LEFT_ALONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mutation.source import Place, Source, Span


class Change(NamedTuple):
    """A replacement of a span of text; `kind` names the operation."""

    kind: str
    span: Span
    text: str


COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
}
COMPUTED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "//"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "+"),
    ast.BitOr: (r"\|", "&"),
    ast.BitAnd: ("&", "|"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}
# A method whose call can be left out: `query.where(x)` becomes `query`.
OPTIONAL = {
    *("where", "order_by", "distinct", "limit", "offset", "having", "group_by", "desc", "asc"),
    *("strip", "lstrip", "rstrip", "lower", "upper", "casefold", "removeprefix", "removesuffix"),
}
DROPPED_ARGUMENTS = {"where", "order_by", "on", "having"}


def comparison(source: Source, place: Place) -> Iterator[Change]:
    """Replace `<` with `<=`, `==` with `!=` and so on."""
    if isinstance(node := place.node, ast.Compare):
        operands = [node.left, *node.comparators]
        for operator, before, after in zip(node.ops, operands, operands[1:], strict=False):
            old, new = COMPARED[type(operator)]
            yield from _between(source, before, after, old, "comparison", new)


def arithmetic(source: Source, place: Place) -> Iterator[Change]:
    """Replace `+` with `-`, `|` with `&` and so on."""
    if isinstance(node := place.node, ast.BinOp) and type(node.op) in COMPUTED:
        old, new = COMPUTED[type(node.op)]
        yield from _between(source, node.left, node.right, old, "arithmetic", new)


def boolean(source: Source, place: Place) -> Iterator[Change]:
    """Exchange `and` and `or`; drop one of the conditions; drop `not`."""
    node = place.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        start, end = source.span(node)
        yield Change("dropped not", (start, end), source.content[start + 3 : end].decode().strip())
    if not isinstance(node, ast.BoolOp):
        return
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    found = [_between(source, *pair, old, "boolean", new) for pair in zip(node.values, node.values[1:], strict=False)]
    changes = [change for each in found for change in each]
    yield from changes
    yield from _dropped(source, source.span(node), [change.span for change in changes], f" {old} ")


def _dropped(source: Source, whole: Span, separators: list[Span], joint: str) -> Iterator[Change]:
    """The text between separators with one part left out."""
    starts, ends = [whole[0], *(end for _, end in separators)], [*(start for start, _ in separators), whole[1]]
    parts = [source.content[start:end].decode().strip() for start, end in zip(starts, ends, strict=True)]
    for index in range(len(parts)):
        yield Change("dropped condition", whole, joint.join(parts[:index] + parts[index + 1 :]))


def _between(source: Source, before: ast.expr, after: ast.expr, old: str, kind: str, new: str) -> Iterator[Change]:
    """Replace the operator between two operands."""
    start, end = source.gap(before, after)
    bound = r"\b" if old[0].isalpha() else ""
    if found := re.search(f"{bound}{old}{bound}", source.content[start:end].decode()):
        offset = len(source.content[start:end].decode()[: found.start()].encode())
        yield Change(kind, (start + offset, start + offset + len(found[0])), new)


def constant(source: Source, place: Place) -> Iterator[Change]:
    """Change a number by one, flip a boolean, lengthen a word; prose stays."""
    if not isinstance(node := place.node, ast.Constant):
        return
    match node.value:
        case bool():
            yield Change("constant", source.span(node), str(not node.value))
        case int() | float():
            yield Change("constant", source.span(node), repr(node.value + 1))
            if node.value == 1:
                yield Change("constant", source.span(node), "0")
        case str() if not re.search(r"\s", node.value) and source.text(node)[:1] in {"'", '"'}:
            yield Change("constant", source.span(node), repr(f"{node.value}X").replace("'", '"'))


def condition(source: Source, place: Place) -> Iterator[Change]:
    """Let a condition always or never hold."""
    node = place.node
    if isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Constant):
        values = ["False"] if isinstance(node, ast.While) else ["True", "False"]
        yield from (Change("dropped condition", source.span(node.test), value) for value in values)
    if isinstance(node, ast.comprehension):
        yield from (Change("dropped condition", source.span(test), "True") for test in node.ifs)


def call(source: Source, place: Place) -> Iterator[Change]:
    """Swap the first two arguments, drop one that has a name, leave out a method, exchange `min` and `max`."""
    if not isinstance(node := place.node, ast.Call):
        return
    yield from _arguments(source, node)
    match node.func:
        case ast.Name(id=name) if name in TWINS:
            yield Change("function", source.span(node.func), TWINS[name])
        case ast.Name(id="sorted"):
            yield Change("function", source.span(node), f"list({source.text(node.args[0])})")
        case ast.Attribute(value=ast.expr(), attr=name) if name in OPTIONAL:
            start, end = source.span(node)
            dot = source.content.rindex(b".", start, source.span(node.func)[1])
            yield Change("dropped call", (start, end), source.content[start:dot].decode().rstrip())


def _arguments(source: Source, node: ast.Call) -> Iterator[Change]:
    plain = [each for each in node.args if not isinstance(each, ast.Starred | ast.GeneratorExp)]
    swaps = not (isinstance(node.func, ast.Name) and node.func.id in TWINS)  # max(a, b) is max(b, a)
    if swaps and len(plain) > 1 and plain == node.args and source.text(plain[0]) != source.text(plain[1]):
        (start, first), (second, end) = source.span(plain[0]), source.span(plain[1])
        between = source.content[first:second].decode()
        swapped = f"{source.text(plain[1])}{between}{source.text(plain[0])}"
        yield Change("swapped arguments", (start, end), swapped)
    for keyword in node.keywords:
        if keyword.arg and keyword.arg not in LEFT_ALONE:
            start, end = source.span(keyword)
            comma = re.match(rb"\s*,[ ]?", source.content[end:])
            yield Change("dropped argument", (start, end + (len(comma[0]) if comma else 0)), "")
    if isinstance(node.func, ast.Attribute) and node.func.attr in DROPPED_ARGUMENTS:
        for each, following in pairwise(plain):
            yield Change("dropped condition", (source.span(each)[0], source.span(following)[0]), "")


EXPRESSIONS: tuple[Callable[[Source, Place], Iterator[Change]], ...] = (
    comparison,
    arithmetic,
    boolean,
    constant,
    condition,
    call,
)
