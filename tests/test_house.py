"""The rules of the house that can be counted: layers, lengths, names."""

import ast
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter import cli

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "musicsvc").rglob("*.py"))
LONGEST_FILE = 300
LONGEST_FUNCTION = 40
NAMELESS = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}


def test_the_layers_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            monkeypatch.setattr(logger, "disabled", logger.disabled)  # which the checker sets on all but its own

    assert cli.lint_imports(no_cache=True) == cli.EXIT_STATUS_SUCCESS


def test_no_file_outgrows_its_subject() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in SOURCES}

    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}: {node.name}", (node.end_lineno or 0) - node.lineno + 1


def test_no_function_outgrows_the_eye() -> None:
    # A migration is one function, a list of tables.
    lengths = dict(pair for path in SOURCES if "migrations" not in path.parts for pair in _functions(path))

    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def test_every_module_has_a_noun() -> None:
    assert [path for path in SOURCES if path.stem in NAMELESS or path.parent.name in NAMELESS] == []
