"""Bytecode that marks the suites it executes, laid beside unchanged sources."""

from __future__ import annotations

import ast
import importlib.util
import marshal
from typing import TYPE_CHECKING

from mutation import suites

if TYPE_CHECKING:
    from mutation.project import Copy, Project

UNCHECKED = (1).to_bytes(4, "little")  # bytecode that Python uses whatever the source holds, see PEP 552
NAME = "_mutation_hits"
Place = tuple[str, str, int]  # module, function, number of the suite


def package(project: Project, copy: Copy) -> list[Place]:
    """Compile every module of the copy so that it marks its suites; the places by their marks."""
    places: list[Place] = []
    for module in project.modules():
        source = project.source(module)
        tree = ast.parse(source)
        for suite in suites.find(tree):
            _mark(suite, len(places))
            places.append((module, suite.function, suite.number))
        _after_docstring(tree.body, ast.parse(f"from mutation_hits import HITS as {NAME}").body[0])
        _write(copy, module, source, tree)
    return places


def _mark(suite: suites.Suite, number: int) -> None:
    _after_docstring(suite.statements, ast.parse(f"{NAME}[{number}] = 1").body[0])


def _after_docstring(statements: list[ast.stmt], added: ast.stmt) -> None:
    index = 0
    for index, statement in enumerate(statements):  # noqa: B007 - used after the loop
        if not _comes_first(statement):
            break
    else:
        index = len(statements)
    near = statements[min(index, len(statements) - 1)] if statements else None
    for node in ast.walk(added):
        if near is not None:
            ast.copy_location(node, near)
    statements.insert(index, ast.fix_missing_locations(added))


def _comes_first(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _write(copy: Copy, module: str, source: bytes, tree: ast.Module) -> None:
    path = copy.root / module
    code = marshal.dumps(compile(tree, str(path), "exec", dont_inherit=True))
    bytecode = importlib.util.cache_from_source(str(path))
    path.parent.joinpath("__pycache__").mkdir(exist_ok=True)
    with open(bytecode, "wb") as file:  # noqa: PTH123 - its name is text
        file.write(importlib.util.MAGIC_NUMBER + UNCHECKED + importlib.util.source_hash(source) + code)
