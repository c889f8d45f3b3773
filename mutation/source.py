"""A module's text and tree: where a node's text stands, and which nodes can be broken."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mutation import suites

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutation.suites import Position

Span = tuple[int, int]  # bytes of the file
Located = ast.expr | ast.stmt | ast.keyword

LOGGERS = {"log", "logger"}
QUIET = {"debug", "info"}
# Texts for readers, which tests rightly leave alone, and arguments that only help the type checker.
PROSE = {"help", "metavar", "description", "summary", "title", "example", "examples", "rich_help_panel"}
# Arguments that change nothing in code that is right, or in tables, which migrations make.
GUARDS = {"strict", "slots", "show_default", "null", "index"}
LEFT_ALONE = PROSE | GUARDS
TYPING = {"TypeVar", "NewType", "ParamSpec", "cast", "getLogger", "NamedTuple"}
NEVER_RUN = re.compile(r"(typing\.)?TYPE_CHECKING")


@dataclass(frozen=True)
class Place:
    """A node that can be broken, the statement around it, and the function around both."""

    node: ast.AST
    statement: ast.stmt
    function: str
    returns: str


class Source:
    """One module."""

    def __init__(self, path: str, content: bytes) -> None:
        self.path = path
        self.content = content

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.content)

    @cached_property
    def suites(self) -> list[suites.Suite]:
        """The suites of its functions."""
        return suites.find(self.tree)

    @cached_property
    def _lines(self) -> list[int]:
        starts = [0]
        for line in self.content.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def span(self, node: Located) -> Span:
        """Where the text of a node stands, without parentheses around it."""
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    def position(self, offset: int) -> Position:
        """The line and column of a byte."""
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1]

    def lines(self, span: Span) -> Span:
        """The whole lines around a span."""
        first, last = bisect_right(self._lines, span[0]) - 1, bisect_left(self._lines, span[1])
        return self._lines[first], self._lines[last]

    def text(self, node: Located) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.content[start:end].decode()

    def gap(self, before: Located, after: Located) -> Span:
        """What stands between two nodes: operators, commas and parentheses."""
        return self.span(before)[1], self.span(after)[0]

    def places(self) -> Iterator[Place]:
        """Every node that can be broken."""
        yield from _Walk(self)(self.tree.body, "", "")


@dataclass(frozen=True)
class _Walk:
    source: Source

    def __call__(self, statements: list[ast.stmt], function: str, returns: str) -> Iterator[Place]:
        for statement in statements:
            if isinstance(statement, suites.FUNCTIONS):
                inner = f"{function}.{statement.name}" if function else statement.name
                hint = self.source.text(statement.returns) if statement.returns else ""
                for default in [*statement.args.defaults, *statement.args.kw_defaults]:
                    if default is not None:
                        yield from self._expressions(default, statement, inner, "")
                yield from self(statement.body, inner, hint)
            elif isinstance(statement, ast.ClassDef):
                yield from self(statement.body, f"{function}.{statement.name}" if function else statement.name, "")
            elif not _is_left_out(statement):
                yield from self._statement(statement, function, returns)

    def _statement(self, statement: ast.stmt, function: str, returns: str) -> Iterator[Place]:
        yield Place(statement, statement, function, returns)
        for name, value in ast.iter_fields(statement):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.ExceptHandler | ast.match_case):
                    yield from self(child.body, function, returns)
                elif isinstance(child, ast.withitem):
                    yield from self._expressions(child.context_expr, statement, function, returns)
                elif isinstance(child, ast.stmt):
                    yield from self([child], function, returns)
                elif isinstance(child, ast.expr) and name not in {"annotation", "target", "targets"}:
                    yield from self._expressions(child, statement, function, returns)

    def _expressions(self, node: ast.AST, statement: ast.stmt, function: str, returns: str) -> Iterator[Place]:
        if isinstance(node, ast.Call) and _is_left_alone(node):
            return
        if isinstance(node, ast.expr | ast.comprehension):
            yield Place(node, statement, function, returns)
        if isinstance(node, ast.JoinedStr):  # Python 3.11 gives wrong positions to the parts of an f-string
            return
        for child in ast.iter_child_nodes(node):
            if not (isinstance(child, ast.keyword) and child.arg in LEFT_ALONE):
                yield from self._expressions(child, statement, function, returns)


def _is_left_out(statement: ast.stmt) -> bool:
    """Whether a statement never runs, or is no code: type checking, docstrings, names for the type checker."""
    match statement:
        case ast.If(test=test):
            return bool(NEVER_RUN.fullmatch(ast.unparse(test)))
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.startswith("__") or _is_alias(statement.value)
        case ast.AnnAssign(annotation=annotation):
            return "TypeAlias" in ast.unparse(annotation)
    return False


def _is_alias(value: ast.expr) -> bool:
    """Whether the value is a union of types."""
    match value:
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            parts = (left, right)
            return any(isinstance(part, ast.Subscript) or ast.unparse(part) in {"None", "str", "int"} for part in parts)
    return False


def _is_left_alone(call: ast.Call) -> bool:
    """Whether the arguments of a call are texts for logs or for the type checker."""
    name = ast.unparse(call.func)
    return name.partition(".")[0] in LOGGERS or name in TYPING or name.endswith(".getLogger")


def is_quiet(call: ast.Call) -> bool:
    """Whether the call only writes a line of the log that asks nobody to act."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=name), attr=level):
            return name in LOGGERS and level in QUIET
    return False
