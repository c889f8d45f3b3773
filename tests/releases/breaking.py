"""Finds what of an OpenAPI document would break the clients of an earlier one."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

JSON = Mapping[str, Any]
LOWER, UPPER = ("minimum", "minLength", "minItems"), ("maximum", "maxLength", "maxItems")


class Side(NamedTuple):
    """A document, for the references of its schemas."""

    document: JSON

    def resolved(self, part: JSON) -> JSON:
        while "$ref" in part:
            target: Any = self.document
            for name in part["$ref"].removeprefix("#/").split("/"):
                target = target[name]
            part = target
        return part

    def branches(self, schema: JSON) -> list[JSON]:
        """Return the schemas of which a value must match one."""
        schema = self.resolved(schema)
        several = schema.get("anyOf") or schema.get("oneOf")
        return [each for part in several for each in self.branches(part)] if several else [schema]


class Comparison:
    """Compares two documents. What clients send may become more, and what they receive may get more fields."""

    def __init__(self, before: JSON, now: JSON) -> None:
        self._before, self._now = Side(before), Side(now)
        self._open: set[tuple[int, int]] = (
            set()
        )  # pairs of schemas that are being compared: they may contain themselves

    def faults(self) -> Iterator[str]:
        """Yield one line for each break."""
        for path, methods in self._before.document["paths"].items():
            for method, before in methods.items():
                now = self._now.document["paths"].get(path, {}).get(method)
                place = f"{method.upper()} {path}"
                yield from (
                    (f"{place}: {line}" for line in self._operation(before, now)) if now else [f"{place} is gone"]
                )

    def _operation(self, before: JSON, now: JSON) -> Iterator[str]:
        if before["operationId"] != now["operationId"]:
            yield "another operationId"
        if not before["security"] or {} in before["security"]:
            yield from [] if not now["security"] or {} in now["security"] else ["needs a token"]
        yield from self._parameters(before, now)
        yield from self._body(before.get("requestBody"), now.get("requestBody"))
        for status, answer in before["responses"].items():
            if status not in now["responses"]:
                yield f"status {status} is gone"
            else:
                yield from self._answer(f"status {status}", answer, now["responses"][status])

    def _parameters(self, before: JSON, now: JSON) -> Iterator[str]:
        olds, news = ({(part["in"], part["name"]): part for part in each["parameters"]} for each in (before, now))
        for key, old in olds.items():
            if key not in news:
                yield f"parameter {key[1]} is gone"
            else:
                yield from self._schema(f"parameter {key[1]}", old["schema"], news[key]["schema"], sent=True)
        for key, new in news.items():
            if new.get("required") and not olds.get(key, {}).get("required"):
                yield f"parameter {key[1]} is required"

    def _body(self, before: JSON | None, now: JSON | None) -> Iterator[str]:
        if now and now["required"] and not (before and before["required"]):
            yield "the body is required"
        if before and now:
            yield from self._content("body", before["content"], now["content"], sent=True)
        elif before:
            yield "takes no body"

    def _answer(self, place: str, before: JSON, now: JSON) -> Iterator[str]:
        before, now = self._before.resolved(before), self._now.resolved(now)
        yield from (f"{place}: header {name} is gone" for name in before["headers"] if name not in now["headers"])
        yield from self._content(place, before.get("content", {}), now.get("content", {}), sent=False)

    def _content(self, place: str, before: JSON, now: JSON, *, sent: bool) -> Iterator[str]:
        for media, old in before.items():
            if media not in now:
                yield f"{place}: {media} is gone"
            else:
                yield from self._schema(place, old["schema"], now[media]["schema"], sent=sent)

    def _schema(self, place: str, before: JSON, now: JSON, *, sent: bool) -> Iterator[str]:
        """Yield the breaks of a schema. Each branch of the one before must be served by some branch of the one now."""
        olds, news = self._before.branches(before), self._now.branches(now)
        if not sent and (added := {_kind(each) for each in news} - {_kind(each) for each in olds}):
            yield f"{place}: may be {', '.join(sorted(added))}"
        for old in olds:
            found = [list(self._branch(place, old, new, sent=sent)) for new in news if _kind(new) == _kind(old)]
            yield from min(found, key=len) if found else [f"{place}: is no {_kind(old)} any more"]

    def _branch(self, place: str, before: JSON, now: JSON, *, sent: bool) -> Iterator[str]:
        pair = id(before), id(now)
        if pair in self._open:
            return
        self._open.add(pair)
        yield from _values(place, before, now, sent=sent)
        yield from self._fields(place, before, now, sent=sent)
        if "items" in before and "items" in now:
            yield from self._schema(f"{place}[]", before["items"], now["items"], sent=sent)
        self._open.discard(pair)

    def _fields(self, place: str, before: JSON, now: JSON, *, sent: bool) -> Iterator[str]:
        olds, news = before.get("properties", {}), now.get("properties", {})
        for name, old in olds.items():
            if name not in news:
                yield f"{place}.{name} is gone"
            else:
                yield from self._schema(f"{place}.{name}", old, news[name], sent=sent)
        needed, were = {*now.get("required", ())}, {*before.get("required", ())}
        changed = (needed - were) if sent else (were - needed) & news.keys()
        yield from (f"{place}.{name} is {'required' if sent else 'optional'}" for name in sorted(changed))


def breaks(before: JSON, now: JSON) -> list[str]:
    """Return one line for each thing in which `now` would break a client that was written for `before`."""
    return list(Comparison(before, now).faults())


def _kind(schema: JSON) -> str:
    return str(schema.get("type", "constant" if "const" in schema else "anything"))


def _values(place: str, before: JSON, now: JSON, *, sent: bool) -> Iterator[str]:
    olds, news = _listed(before), _listed(now)
    if news is not None and (olds is None or olds - news):
        yield f"{place}: takes fewer values" if olds is None else f"{place}: without {', '.join(sorted(olds - news))}"
    if before.get("format") != now.get("format") and not (sent and "format" not in now):
        yield f"{place}: has the format {now.get('format')}"
    if sent:
        yield from (f"{place}: {name} is higher" for name in LOWER if now.get(name, 0) > before.get(name, 0))
        most = float("inf")
        yield from (f"{place}: {name} is lower" for name in UPPER if now.get(name, most) < before.get(name, most))


def _listed(schema: JSON) -> set[str] | None:
    """Return the values of an enumeration as texts, or None of another schema."""
    return {*map(str, schema.get("enum", [schema["const"]] if "const" in schema else ()))} or None
