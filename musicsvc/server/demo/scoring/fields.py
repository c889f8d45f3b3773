"""The point of clients that send only fields and parameters of the OpenAPI document."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cachetools import LRUCache

from musicsvc.server.demo.scoring.observed import Observed
from musicsvc.server.demo.scoring.point import Point
from musicsvc.wording import escape_controls

MOST_NAMED = 5
MOST_KINDS = 1000
LONGEST_NAME = 60
Schema = Mapping[str, Any]


class Operation(NamedTuple):
    """The query parameters that a client may send, with True if they are deprecated, and the schema of the body."""

    parameters: Mapping[str, bool]
    body: Schema | None


class SendsKnownFields(Point):
    """A client sends no fields and parameters that the OpenAPI document lacks, or has as deprecated.

    Unknown ones do nothing, which only a header says (`responses/handling.py`). The same names in further requests to
    the same endpoint count once.
    """

    name = "fields"
    title = "Sends documented fields"
    remedy = "Send only what the OpenAPI document has for the request, and no deprecated names."
    occasion = "Let the client send a query or a body."

    def __init__(self, document: Schema) -> None:
        super().__init__()
        self._schemas: Schema = document["components"]["schemas"]
        self._operations = {
            (method.upper(), path): _operation(operation)
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
        }
        self._reported: LRUCache[object, None] = LRUCache(MOST_KINDS)  # outlasts `forget`, as the document does

    def see(self, seen: Observed) -> None:
        entry = seen.entry
        method = "GET" if entry.method == "HEAD" else entry.method
        operation = self._operations.get((method, entry.route or ""))
        if operation is None or not (seen.query or seen.body):
            return
        wrong = [*_wrong_parameters(operation, seen), *self._wrong_fields(operation.body, seen.body)]
        if not wrong:
            self.passed = True
            return
        key = (seen.client, method, entry.route, *wrong)
        if key not in self._reported:
            self._reported[key] = None
            self.accuse(f"sent {', '.join(wrong[:MOST_NAMED])}", seen)

    def _wrong_fields(self, schema: Schema | None, body: Any) -> Iterator[str]:
        """Yield the unknown and the deprecated fields of a body, each once, with the path to it."""
        waiting: list[tuple[str, Sequence[Schema], Any]] = [] if schema is None else [("", [schema], body)]
        found: set[str] = set()
        while waiting and len(found) < MOST_NAMED:
            place, schemas, value = waiting.pop()
            forms = [*self._forms(schemas)]
            if isinstance(value, list):
                items = [form["items"] for form in forms if "items" in form]
                waiting += ((f"{place}[]", items, each) for each in value)
            elif isinstance(value, dict) and any("properties" in form for form in forms):
                for name, part in value.items():
                    whole = f"{place}.{name}".removeprefix(".")
                    known = [form["properties"][name] for form in forms if name in form.get("properties", ())]
                    waiting.append((whole, known, part))
                    if (fault := _fault(known)) is not None and (
                        text := f"the {fault} field {_show(whole)}"
                    ) not in found:
                        found.add(text)
                        yield text

    def _forms(self, schemas: Sequence[Schema]) -> Iterator[Schema]:
        """Yield the schemas with references resolved, and their alternatives."""
        for schema in schemas:
            if "$ref" in schema:
                yield from self._forms([self._schemas[schema["$ref"].rpartition("/")[2]]])
            yield schema
            for kind in ("anyOf", "oneOf", "allOf"):
                yield from self._forms(schema.get(kind, ()))


def _operation(operation: Schema) -> Operation:
    queries = [part for part in operation["parameters"] if part["in"] == "query"]
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return Operation({part["name"]: part.get("deprecated", False) for part in queries}, content.get("schema"))


def _wrong_parameters(operation: Operation, seen: Observed) -> Iterator[str]:
    for name in dict(seen.query):
        if name not in operation.parameters:
            yield f"the unknown parameter {_show(name)}"
        elif operation.parameters[name]:
            yield f"the deprecated parameter {_show(name)}"


def _fault(known: Sequence[Schema]) -> str | None:
    if not known:
        return "unknown"
    return "deprecated" if all(schema.get("deprecated") for schema in known) else None


def _show(name: str) -> str:
    return escape_controls(name[:LONGEST_NAME])
