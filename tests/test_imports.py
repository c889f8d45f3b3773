"""The import graph of the package has no cycle, imports inside functions and for type checking included."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def modules(root: Path) -> dict[str, Path]:
    """Map the names of the modules below the root to their files."""
    return {_name(path.relative_to(root)): path for path in sorted((root / "musicsvc").rglob("*.py"))}


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules of the package that the file imports anywhere in it; all its imports are absolute."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found = [f"{node.module}.{alias.name}" for alias in node.names]
            names |= {name if name in known else node.module for name in found}
    return names & known.keys()


def cycle(root: Path) -> list[str]:
    """Return the modules of one import cycle, the first one again at the end; empty if there is no cycle."""
    known = modules(root)
    try:
        TopologicalSorter({name: imports(path, known) for name, path in known.items()}).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_no_module_imports_itself_through_others() -> None:
    assert len(modules(ROOT)) > 200
    assert cycle(ROOT) == []


@pytest.mark.parametrize(
    "back",
    [
        "import musicsvc.a.one",
        "from musicsvc.a import one",
        "from musicsvc.a.one import name",
        "def later() -> None:\n    from musicsvc.a import one",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from musicsvc.a.one import name",
    ],
)
def test_a_cycle_is_found(tmp_path: Path, back: str) -> None:
    package = tmp_path / "musicsvc" / "a"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "one.py").write_text("from musicsvc.a import two\nname = 1\n")
    (package / "two.py").write_text(back + "\n")
    assert sorted(set(cycle(tmp_path))) == ["musicsvc.a.one", "musicsvc.a.two"]
    (package / "two.py").write_text("import json\n")
    assert cycle(tmp_path) == []
