"""Rules for the code that a test can check: layers, lengths, names, the folder map."""

import ast
import logging
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from importlinter import cli

from tests.support import bounds

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "musicsvc").rglob("*.py"))
LARGEST_FOLDER = 16  # modules
LARGE_FOLDERS = {
    "cli",
    "reports",
    "server/handlers",
    "server/routes",
    "server/schemas",
    "server/shapes",
    "store/models",
}
LONGEST_FILE = 400
INSTALLED = {".venv", "node_modules"}  # what tests/clients/install brings
LONGEST_FUNCTION = 40
NAMELESS = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}
# Texts of SQL by room of the store. These numbers may only shrink: lower them with what you write in Peewee.
ROOMS_OF_TEXTS = {
    "backups", "copying", "doctor", "engine", "insights", "migrations", "plays", "rate_limits", "recounting", "schema"
}  # fmt: skip
TEXTS = {"catalog": 10, "dashboards": 5, "importing": 6, "people": 1}
MOST_TEXTS = 302
SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|DROP|ALTER|PRAGMA|ANALYZE|VACUUM|BEGIN|COMMIT|TRUNCATE|LOCK|SET|COPY"
    r"|REPLACE|MERGE)\b[\s(](?!NULL$)"
)


def test_the_layers_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            monkeypatch.setattr(logger, "disabled", logger.disabled)  # the checker disables all other loggers

    assert cli.lint_imports(no_cache=True) == cli.EXIT_STATUS_SUCCESS


def test_no_module_imports_itself_through_others() -> None:
    """Imports inside functions and for type checking count, too."""
    graph = grimp.build_graph("musicsvc", cache_dir=None)

    assert len(graph.modules) > 200
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


def test_no_file_is_too_long() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in SOURCES}

    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


@pytest.mark.parametrize("place", bounds.CONSTANTS.values())
def test_every_constant_that_tests_lower_exists(place: str) -> None:
    if "postgres" in place:
        pytest.importorskip("psycopg")
    pkgutil.resolve_name(f"musicsvc.{place}")


def test_no_folder_outgrows_a_glance() -> None:
    counts = Counter(
        path.parent.relative_to(ROOT / "musicsvc").as_posix() for path in SOURCES if path.stem != "__init__"
    )
    large = {folder for folder, count in counts.items() if count > LARGEST_FOLDER and "migrations" not in folder}

    assert large - LARGE_FOLDERS == set()
    assert counts["store"] <= 3


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}: {node.name}", (node.end_lineno or 0) - node.lineno + 1


def test_no_function_is_too_long() -> None:
    # A migration is one function, a list of tables.
    lengths = dict(pair for path in SOURCES if "migrations" not in path.parts for pair in _functions(path))

    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def _strings(path: Path) -> Iterator[str]:
    """The literals of a file; of an f-string, what is before its first value."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    parts = [part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values]
    inner = {id(part) for part in parts} - {id(node.values[0]) for node in nodes if isinstance(node, ast.JoinedStr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def test_queries_are_peewee_expressions_where_they_are_not_what_the_room_is_about() -> None:
    store = ROOT / "musicsvc" / "store"
    texts = Counter(path.relative_to(store).parts[0] for path in SOURCES for each in _strings(path) if SQL.match(each))

    assert texts.total() <= MOST_TEXTS
    others = {room: number for room, number in texts.items() if room not in ROOMS_OF_TEXTS}
    assert {room: number for room, number in others.items() if number > TEXTS.get(room, 0)} == {}


def test_module_names_say_what_the_module_contains() -> None:
    assert [path for path in SOURCES if path.stem in NAMELESS or path.parent.name in NAMELESS] == []


def _folders() -> set[str]:
    """All folders of the package, relative to it."""
    paths = {path.relative_to(ROOT / "musicsvc") for path in (ROOT / "musicsvc").rglob("*") if path.is_file()}
    folders = {str(parent) for path in paths for parent in path.parents if "__pycache__" not in path.parts}
    return folders - {"."}


def test_the_folder_map_names_every_folder_of_the_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = re.findall(r"^\| `([a-z_/]+)/` \|", page, re.MULTILINE)

    assert sorted(named) == sorted(_folders()), "mend the folder map of docs/architecture.md"


def test_the_modules_that_the_architecture_page_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = re.findall(r"`((?:cli|reports|server|store)/[a-z_/]+\.py)`", page)

    assert len(named) > 10
    assert [name for name in named if not (ROOT / "musicsvc" / name).exists()] == []


def test_every_suppression_has_its_reason() -> None:
    folders = ("musicsvc", "tests", "benchmarks", "checks")
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not INSTALLED & set(path.parts)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"# noqa\b(?!: [A-Z0-9, ]+ - \S)", line) and "re.search" not in line
    ]

    assert lines == []
