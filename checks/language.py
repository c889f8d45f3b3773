"""Check comments, docstrings, texts and documentation for phrases that the style guide refuses.

`python checks/language.py` fails on every hit; `--report` prints the number of hits per folder and succeeds.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("musicsvc", "tests", "benchmarks", "docs")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
INSTALLED = {".venv", "node_modules"}  # tests/clients/install brings them
SUFFIXES = {".py", ".md", ".toml"}
PHRASES = ("anew", "whom", "that which", "is told", "are told", "at odds with", "so many")
PHRASE = re.compile(r"\b(?:" + "|".join(phrase.replace(" ", r"\s+") for phrase in PHRASES) + r")\b", re.IGNORECASE)
OPENING = re.compile(r"\s*(?:What|Who|Whom|Which|How|That)\b")
# Docstrings of commands and handlers are help texts and summaries of the API: they are for users.
FOR_USERS = (Path("musicsvc/cli"), Path("musicsvc/server/handlers"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
RAISES = re.compile(r"\brais(?:es?|ed|ing)\b|\brefuse", re.IGNORECASE)
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Hit(NamedTuple):
    """A refused phrase: the file, relative to the repository, the line and the reason."""

    path: Path
    line: int
    reason: str


def _files() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (
            path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES and not INSTALLED & {*path.parts}
        )
    yield from (ROOT / page for page in PAGES)


def _phrases(path: Path, text: str) -> Iterator[Hit]:
    for match in PHRASE.finditer(text):
        yield Hit(path, text.count("\n", 0, match.start()) + 1, f"refused phrase: {' '.join(match[0].split())}")


def _docstrings(path: Path, text: str) -> Iterator[Hit]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, WITH_DOCSTRING) and OPENING.match(docstring := ast.get_docstring(node) or ""):
            line = node.body[0].lineno
            yield Hit(path, line, f"the docstring begins with {docstring.split()[0]}; begin with a verb or a noun")


def _public_functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_"):
            if isinstance(node, ast.ClassDef):
                yield from _public_functions(node.body)
            else:
                yield node


def _raises(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether the function raises an error itself, outside of functions within it."""
    nodes: list[ast.AST] = [*function.body]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Raise) and node.exc and ast.unparse(node.exc) != "NotImplementedError":
            return True
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            nodes.extend(ast.iter_child_nodes(node))
    return False


def _errors(path: Path, text: str) -> Iterator[Hit]:
    if path.parts[0] == "musicsvc" and not any(path.is_relative_to(folder) for folder in FOR_USERS):
        for function in _public_functions(ast.parse(text).body):
            if _raises(function) and not RAISES.search(ast.get_docstring(function) or ""):
                yield Hit(path, function.lineno, f"the docstring of {function.name} does not say what it raises")


def check(path: Path, text: str) -> Iterator[Hit]:
    """Yield the hits in the text of a file."""
    yield from _phrases(path, text)
    if path.suffix == ".py":
        yield from _docstrings(path, text)
        yield from _errors(path, text)


def find() -> list[Hit]:
    """Return all hits of the repository, by file and line."""
    return sorted(hit for file in _files() for hit in check(file.relative_to(ROOT), file.read_text("utf-8")))


def _folder(path: Path) -> str:
    """Return the path of at most three folders that contains the file."""
    return "/".join(path.parts[:-1][:3])


def main() -> int:
    """Print the hits, or with --report their number per folder; return the exit code."""
    hits = find()
    if "--report" in sys.argv[1:]:
        for folder, count in sorted(Counter(_folder(hit.path) for hit in hits).items()):
            sys.stdout.write(f"{count:5} {folder}\n")
        sys.stdout.write(f"{len(hits):5} in all\n")
        return 0
    for hit in hits:
        sys.stdout.write(f"{hit.path}:{hit.line}: {hit.reason}\n")
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
