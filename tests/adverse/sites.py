"""Finds where the product looks at text with a pattern or a normal form, and which of these places a call reaches."""

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import regex

import musicsvc

ROOT = Path(musicsvc.__file__).parent
SEARCHING = {"search", "sub", "subn", "split", "findall", "finditer"}
PATTERNS = (re.Pattern, type(regex.compile("")))


class Site(NamedTuple):
    """A call. `name`: of the variable that gets the result, or of the function with `()`; `pattern`: if it is a text.

    `kind`: the name of the function that is called, or `pattern=` for an argument.
    """

    file: str
    name: str
    kind: str
    pattern: str | None

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"

    @property
    def value(self) -> Any:
        """The variable of the module, or None."""
        if "." in self.name or "()" in self.name:
            return None
        return getattr(
            importlib.import_module(f"musicsvc.{self.file.removesuffix('.py').replace('/', '.')}"), self.name
        )


class Product(NamedTuple):
    """The places of the product, and the names of variables whose patterns are looked for at each place of a text."""

    sites: list[Site]
    searched: set[str]


def scan() -> Product:
    """Read the syntax trees of the product. Migrations look at no text of clients."""
    found = Product([], set())
    for path in sorted(ROOT.rglob("*.py")):
        if "migrations" not in path.parts:
            tree = ast.parse(path.read_text("utf-8"))
            found.sites.extend(sites_of(path.relative_to(ROOT).as_posix(), tree))
            found.searched.update(_searched(tree))
    return found


def sites_of(file: str, tree: ast.Module) -> Iterator[Site]:
    """Yield the places of a module."""
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for name, call in _calls(tree, ""):
        function = call.func
        arguments = {each.arg: each.value for each in call.keywords}
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            module, kind = function.value.id, function.attr
            if (module in {"re", "regex"} and kind != "escape") or (module, kind) == ("unicodedata", "normalize"):
                yield Site(file, name, kind, _text(call.args[0], constants) if module == "re" else None)
        if "pattern" in arguments:
            yield Site(file, name, "pattern=", _text(arguments["pattern"], constants))


def _text(node: ast.expr, constants: dict[str, Any]) -> str | None:
    found = constants.get(node.id) if isinstance(node, ast.Name) else getattr(node, "value", None)
    return found if isinstance(found, str) else None


def _calls(node: ast.AST, scope: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield all calls, each with the name of the variable or function that contains it."""
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{_prefix(scope)}{child.name}()"
        elif isinstance(child, ast.ClassDef):
            inner = f"{_prefix(scope)}{child.name}"
        elif isinstance(child, ast.Assign | ast.AnnAssign) and "()" not in scope:
            target = child.targets[0] if isinstance(child, ast.Assign) else child.target
            inner = f"{_prefix(scope)}{ast.unparse(target)}"
        if isinstance(child, ast.Call):
            yield inner, child
        yield from _calls(child, inner)


def _prefix(scope: str) -> str:
    return f"{scope.replace('()', '.<locals>')}." if scope else ""


def _searched(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in SEARCHING:
            yield node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")


class Reached:
    """Notes what the calls of the block reach: functions of the product, and patterns."""

    def __init__(self) -> None:
        self._functions: set[tuple[str, str]] = set()
        self._patterns: dict[int, Any] = {}

    def run(self, call: Callable[[], object]) -> None:
        sys.setprofile(self._note)
        try:
            with suppress(Exception):
                call()
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self._functions.add((frame.f_code.co_filename, frame.f_code.co_qualname))
        elif event == "c_call" and isinstance(owner := getattr(argument, "__self__", None), PATTERNS):
            self._patterns[id(owner)] = owner

    def has(self, site: Site) -> bool:
        value = site.value
        if isinstance(value, dict):
            return all(id(each) in self._patterns for each in value.values())
        if isinstance(value, PATTERNS):
            return id(value) in self._patterns
        return (str(ROOT / site.file), site.name.removesuffix("()")) in self._functions
