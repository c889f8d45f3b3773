"""Code that uses code: finds the functions behind a constant, a field or a row of a table, which no test executes."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mutation import suites
    from mutation.source import Source

FAR = 5  # steps from a statement to the functions that depend on it
COMMON = 60  # a name that more units mention says nothing
Place = tuple[str, str]  # module, function


@dataclass(frozen=True)
class Unit:
    """A function, or a statement outside of functions, with the names that it defines and mentions."""

    module: str
    function: str
    start: suites.Position
    end: suites.Position
    defines: frozenset[str]
    mentions: frozenset[str]


class Uses:
    """What mentions what, by name."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._by_module: dict[str, list[Unit]] = {}
        self._mentioning: defaultdict[str, list[Unit]] = defaultdict(list)
        self._defining: defaultdict[str, list[Unit]] = defaultdict(list)
        for source in sources:
            self._by_module[source.path] = [*_units(source.path, "", source.tree.body)]
            for unit in self._by_module[source.path]:
                for name in unit.mentions:
                    self._mentioning[name].append(unit)
                for name in unit.defines:
                    self._defining[name].append(unit)

    def behind(self, module: str, function: str, position: suites.Position) -> Iterator[list[Place]]:
        """The functions that depend on a place, the nearest ones first, in steps."""
        start = [
            unit
            for unit in self._by_module[module]
            if (unit.function == function if function else unit.start <= position < unit.end)
        ]
        seen, units = set(start), start
        for _ in range(FAR):
            units = [unit for unit in self._next(units) if unit not in seen]
            seen.update(units)
            yield [(unit.module, unit.function) for unit in units if unit.function]

    def mentioning(self, module: str, position: suites.Position) -> list[Place]:
        """The functions that mention what a statement defines, however common its name is."""
        names = {name for unit in self._by_module[module] if unit.start <= position < unit.end for name in unit.defines}
        return [(unit.module, unit.function) for name in names for unit in self._mentioning[name] if unit.function]

    def _next(self, units: Iterable[Unit]) -> set[Unit]:
        found: set[Unit] = set()
        for unit in units:
            for name in unit.defines:
                if len(self._mentioning[name]) <= COMMON:
                    found.update(self._mentioning[name])
            if not unit.function:
                found.update(self._called(unit))
        return found

    def _called(self, unit: Unit) -> Iterator[Unit]:
        """The functions of other modules that a statement names together with their module."""
        for name in unit.mentions:
            for other in self._defining[name]:
                if other.function and PurePath(other.module).stem in unit.mentions:
                    yield other


def _units(module: str, scope: str, statements: list[ast.stmt]) -> Iterator[Unit]:
    for statement in statements:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield _unit(module, _join(scope, name), statement, {name})
            case ast.ClassDef(name=name):
                yield from _of_class(module, _join(scope, name), statement)
            case ast.Assign(targets=targets, value=ast.Tuple(elts=rows) | ast.List(elts=rows)):
                yield from (_unit(module, "", row, _names(targets)) for row in rows)
            case ast.AnnAssign(target=target, value=ast.Tuple(elts=rows) | ast.List(elts=rows)):
                yield from (_unit(module, "", row, _names([target])) for row in rows)
            case ast.Assign(targets=targets):
                yield _unit(module, "", statement, _names(targets))
            case ast.AnnAssign(target=target):
                yield _unit(module, "", statement, _names([target]))
            case ast.Import() | ast.ImportFrom():
                pass
            case _:
                yield _unit(module, "", statement, set())


def _of_class(module: str, name: str, node: ast.ClassDef) -> Iterator[Unit]:
    for unit in _units(module, name, node.body):
        added = set() if unit.function else {node.name}
        bases = frozenset(_mentioned(node.bases)) if not unit.function else frozenset()
        yield Unit(module, unit.function, unit.start, unit.end, unit.defines | added, unit.mentions | bases)


def _unit(module: str, function: str, node: ast.expr | ast.stmt, defines: set[str]) -> Unit:
    start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return Unit(module, function, start, end, frozenset(defines), frozenset(_mentioned([node])) - defines)


def _join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _names(targets: Iterable[ast.expr]) -> set[str]:
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _mentioned(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr
