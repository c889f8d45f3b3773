"""The texts of all alarms in the sources: findings of `doctor`, reasons of `/readyz`, lines of the server log.

Each text is a template, in which `…` stands for a value.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from musicsvc.store.engine.sqlite.files import CAUSES

PACKAGE = Path(__file__).resolve().parents[2] / "musicsvc"
DOCTOR = [*(PACKAGE / "store" / "doctor").glob("*.py"), PACKAGE / "server" / "doctor.py", PACKAGE / "cli" / "doctor.py"]
FOUND = {"warning", "problem", "failed"}
LOGGED = {"warning", "error", "critical", "exception", "warn"}
LOGGERS = {"log", "_unready", "_warning"}
VALUE = "…"
Names = dict[str, list[tuple[int, ast.expr]]]


def findings() -> set[tuple[str, str]]:
    """Return the check and the text of every finding of `musicsvc doctor` that is not `ok`."""
    return {
        (check, _text(call.args[1], names))
        for call, names in _calls(DOCTOR)
        if {node.id for node in ast.walk(call.func) if isinstance(node, ast.Name)} & FOUND  # one of two functions, too
        if (check := _text(call.args[0], names)) != VALUE and len(call.args) > 1
    }


def log_lines() -> set[str]:
    """Return every message that the server logs as a warning or an error."""
    found = set()
    for call, names in _calls(_sources("log", "_unready", "_warning")):
        if isinstance(call.func, ast.Attribute) and call.func.attr in LOGGED and _name(call.func.value) in LOGGERS:
            message, *values = (
                _text(argument, names) for argument in call.args if not isinstance(argument, ast.Starred)
            )
            given = iter(values)
            found.add(re.sub(r"%\w", lambda _: next(given, VALUE), message))  # noqa: B023 - used at once
    return found - {VALUE}  # ThrottledWarning passes a message on


def jobs() -> set[str]:
    """Return the name of every background job."""
    return {
        _text(call.args[0], names) for call, names in _calls(_sources("Periodic")) if _name(call.func) == "Periodic"
    }


def reasons() -> set[str]:
    """Return every reason for which `/readyz` answers 503."""
    found = {re.sub(r"{\w+}", VALUE, cause) for cause in CAUSES.values()}
    for file in (PACKAGE / "store" / "schema").glob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        returned = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
        texts = {_text(value, _assigned(tree.body)) for value in returned if isinstance(value, ast.JoinedStr)}
        found |= {text for text in texts if text.startswith(f"{VALUE} ")}
    for call, names in _calls((PACKAGE / "store" / "engine").rglob("*.py")):
        if _name(call.func) == "Unavailable":
            found |= {_text(value, names) for value in (*call.args, *(keyword.value for keyword in call.keywords))}
    tree = ast.parse((PACKAGE / "errors.py").read_text("utf-8"))
    found |= {
        text
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and "Try again shortly" in (text := str(node.value))
    }
    return found - {VALUE}


def _sources(*names: str) -> list[Path]:
    """Return the modules that use one of these names, as parsing all takes seconds."""
    used = re.compile(rf"\b({'|'.join(names)})[.(]")
    return [file for file in PACKAGE.rglob("*.py") if used.search(file.read_text("utf-8"))]


def _name(node: ast.expr) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")


def _calls(files: Iterable[Path]) -> Iterator[tuple[ast.Call, Names]]:
    """Yield each call in functions of the files, with what is assigned to the names of its module and function."""
    for file in files:
        tree = ast.parse(file.read_text("utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inside = list(ast.walk(function))
                names = _assigned(tree.body) | _assigned(inside)
                yield from ((node, names) for node in inside if isinstance(node, ast.Call))


def _assigned(nodes: Iterable[ast.AST]) -> Names:
    found: Names = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append((node.lineno, node.value))
    return found


def _text(node: ast.expr, names: Names) -> str:
    """Return the text of a string expression; names stand for what was assigned to them last before."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(parts):
            return re.sub(f"{VALUE}( {VALUE})+", VALUE, "".join(_text(part, names) for part in parts))
        case ast.FormattedValue(ast.Name(name)) | ast.Name(name):
            before = [value for line, value in names.get(name, ()) if line <= node.lineno]
            if before and isinstance(before[-1], (ast.Constant, ast.JoinedStr)):
                return _text(before[-1], names)
    return VALUE
