"""Types of single fields, such as ids and URLs, and base classes of request bodies and query strings."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    create_model,
)

from musicsvc.clock import parse_date
from musicsvc.store.engine.pagination import Page
from musicsvc.wording import CONTROLS, LONGEST_NAME, NEEDS_VISIBLE, NO_CONTROLS, is_url, is_visible

Schema = TypeVar("Schema", bound=type[BaseModel])
Ids = TypeVar("Ids", bound=Collection[int])
MAX_ID = 2**53 - 1
MAX_PAGE = 2**31 - 1
LONGEST_RESOURCE = 128
NO_NUL = "Must not contain NUL characters."
DIGITS = re.compile(r"0|[1-9][0-9]*+")
DIGITS_KEPT = 400  # of an integer, because longer ones exceed every limit anyway
URL_PATTERN = "^[Hh][Tt][Tt][Pp][Ss]?://[^/?#]"


def parse_id(text: str) -> int | None:
    """Parse the text of an id. Return None if it is not an integer from 1 to 2^53-1."""
    value = int(text[:DIGITS_KEPT]) if DIGITS.fullmatch(text) else 0
    return value if 1 <= value <= MAX_ID else None


def no_nul(value: str) -> str:
    """Return the text. Raises ValueError if it has NUL characters."""
    if "\x00" in value:
        raise ValueError(NO_NUL)
    return value


def _no_controls(value: str) -> str:
    if CONTROLS.search(no_nul(value)):
        raise ValueError(NO_CONTROLS)
    return value


def _visible(value: str) -> str:
    if not is_visible(value):
        raise ValueError(NEEDS_VISIBLE)
    return value


def _real_date(value: str) -> str:
    parse_date(value)
    return value


def _absolute_url(value: str) -> str:
    if not is_url(value):
        raise ValueError("Must be an absolute http or https URL.")
    return value


def _digits(value: str) -> int:
    if not DIGITS.fullmatch(value):
        raise ValueError("Must be a whole number in plain digits.")
    return int(value[:DIGITS_KEPT])


def _trimmed(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def require_unique(values: Ids) -> Ids:
    """Return `values`. Raises ValueError if an id occurs twice."""
    if len(set(values)) < len(values):
        raise ValueError("Must not have an entry twice.")
    return values


class Text(StringConstraints):
    """Constraints of a string: it is trimmed, and must then have `minimum` to `maximum` code points and no controls."""

    def __init__(self, minimum: int, maximum: int) -> None:
        super().__init__(strict=True, strip_whitespace=True, min_length=minimum, max_length=maximum)

    def __iter__(self) -> Iterator[Any]:
        """Yield the constraints one by one; called by pydantic."""
        yield from super().__iter__()
        yield AfterValidator(_no_controls)


class NameText(Text):
    """Constraints of a name: those of a text, and it must have a visible character."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the constraints one by one; called by pydantic."""
        yield from super().__iter__()
        yield AfterValidator(_visible)


def replace_null(value: Any, kind: Any) -> BeforeValidator:
    """Return a validator that replaces null by `value`; `kind` is the type that the JSON schema gives the field."""
    return BeforeValidator(lambda sent: value if sent is None else sent, json_schema_input_type=kind | None)


def empty_is_none(kind: Any) -> BeforeValidator:
    """Return a validator of an optional filter of a query string, which may be empty; `kind`: as in `replace_null`."""
    return BeforeValidator(lambda sent: sent or None, json_schema_input_type=kind | Literal[""] | None)


def id_list(most: int, nouns: str) -> BeforeValidator:
    """Return a validator of query parameters: ids separated by commas, at most `most`."""

    def parse(value: str) -> tuple[int | None, ...]:
        ids = [parse_id(part) for part in value.split(",")] if value else []
        if None in ids:
            raise ValueError(f"Must be ids of {nouns}, separated by commas.")
        if len(ids) > most:
            raise ValueError(f"Must have at most {most} entries.")
        return tuple(ids)

    return BeforeValidator(parse)


TRIMMED = BeforeValidator(_trimmed)  # for literals; `Text` trims by itself
DIGITS_ONLY = BeforeValidator(_digits)  # integers of a query string: ASCII digits, no sign, no leading zero
Id = Annotated[int, Field(strict=True, ge=1, le=MAX_ID, examples=[1])]
QueriedId = Annotated[int, Field(ge=1, le=MAX_ID), DIGITS_ONLY]
Secret = Annotated[str, Field(strict=True), AfterValidator(no_nul)]
Opaque = Annotated[str, Field(strict=True), AfterValidator(_no_controls)]
ExternalId = Annotated[Opaque, Field(min_length=1, max_length=LONGEST_NAME)]
Name = Annotated[str, NameText(1, LONGEST_NAME)]
Email = Annotated[str, Text(1, LONGEST_NAME)]
Description = Annotated[str, Text(0, 10_000)]
Url = Annotated[
    str,
    StringConstraints(strict=True, strip_whitespace=True, max_length=2048),
    AfterValidator(_no_controls),
    AfterValidator(_absolute_url),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": URL_PATTERN,
            "maxLength": 2048,
            "description": "An absolute http or https URL.",
            "examples": ["https://images.example.test/cover.jpg"],
        }
    ),
]
ReleaseDate = Annotated[
    str,
    StringConstraints(strict=True, strip_whitespace=True),
    AfterValidator(_real_date),
    WithJsonSchema({"type": "string", "format": "date", "examples": ["1899-09-18"]}),
]
SEARCH_NAMES = {"query": "q"}  # other names of parameters, for queries with a text to search for
NamePart = Annotated[
    Annotated[str, Text(0, 100)] | None,
    BeforeValidator(lambda sent: _trimmed(sent) or None),
    Field(
        description="Part of the name, ignoring case and accents; one or two characters match only word starts.",
        examples=["maple"],
    ),
]
TagName = Annotated[str, NameText(1, 60)]


def adding(fields: Mapping[str, Any]) -> Callable[[Schema], Schema]:
    """Return a decorator that adds fields, each as (type, pydantic's description of the field), to a schema."""

    def extend(schema: Any) -> Any:
        return create_model(
            schema.__name__, __base__=schema, __module__=schema.__module__, __doc__=schema.__doc__, **fields
        )

    return extend


class Input(BaseModel):
    """Base of request bodies and query strings.

    `misnamed`: names that fields have elsewhere, which are errors here, each with its message.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)  # built in 3 ms at its first request
    misnamed: ClassVar[Mapping[str, str]] = {}

    @classmethod
    @cache
    def known_names(cls) -> frozenset[str]:
        """Return the names that mean something in a request."""
        return frozenset(field.alias or name for name, field in cls.model_fields.items()).union(cls.misnamed)

    @classmethod
    def check_together(cls, _sent: Mapping[str, Any], _faults: Collection[str], _context: Mapping[str, Any]) -> Any:
        """Check rules about several fields, or about the current time (`now` in `context`).

        Return a message for each invalid field. `sent`: the fields of the request; `faults`: the fields that are
        invalid by themselves.
        """
        return {}


class Body(Input):
    """Base of request bodies, which are JSON objects.

    `references`: the fields that contain ids, each with a store function that returns which of the ids do not exist.
    `subjects`: the fields that name an object to which the caller needs access, each with the kind of the object, such
    as `albums`. `most_bytes`: of a body; `any_type`: its Content-Type does not matter; `read`: parses its text in place
    of the parser of JSON.
    """

    most_bytes: ClassVar[int] = 1024 * 1024
    any_type: ClassVar[bool] = False
    read: ClassVar[Callable[[str], Any] | None] = None
    references: ClassVar[Mapping[str, Callable[[list[int]], set[int]]]] = {}
    subjects: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def get_resource(cls, sent: Any, faults: Mapping[str, str]) -> str | None:
        """Return the objects that the body names and the caller must have access to, such as `albums/7`, or None."""
        sent = sent if isinstance(sent, dict) else {}
        found = [(noun, _ids_sent(name, sent.get(name), faults).values()) for name, noun in cls.subjects.items()]
        named = [f"{noun}/{each}" for noun, ids in found for each in ids if type(each) is int and 1 <= each <= MAX_ID]
        return " ".join(named)[:LONGEST_RESOURCE] or None

    @classmethod
    def check_against_store(cls, sent: dict[str, Any], faults: dict[str, str], subject: Any = None) -> dict[str, str]:  # noqa: ARG003 - comments use it
        """Check the fields that are not in `faults` against the database. Return a message for each invalid field.

        Call inside a transaction. `faults`: the errors found so far; `subject`: the object that the path names.
        """
        errors: dict[str, str] = {}
        for name, missing in cls.references.items():
            places = _ids_sent(name, sent.get(name), faults)
            unknown = missing(list(places.values()))
            errors |= {place: f"{value} does not exist." for place, value in places.items() if value in unknown}
        return errors


def _ids_sent(name: str, value: Any, faults: Mapping[str, str]) -> dict[str, int]:
    """Map positions, such as `artists.0`, to the ids in the field `name` that have no error in `faults`."""
    if name in faults or value is None:
        return {}
    places = {f"{name}.{at}": each for at, each in enumerate(value)} if isinstance(value, list) else {name: value}
    return {place: each for place, each in places.items() if place not in faults}


class Query(Input):
    """Base of query string schemas.

    `other_names` maps alternative names of parameters to the names of fields; a request may use only one of the two.
    `names_to_check`: parameters that are not fields, but take part in rules about several parameters. `lists`: fields
    that a form may send several times, as it does for checkboxes; the values are joined by commas.
    """

    other_names: ClassVar[Mapping[str, str]] = {}
    names_to_check: ClassVar[Collection[str]] = ()
    lists: ClassVar[Collection[str]] = ()

    @property
    def resource(self) -> str | None:
        """The objects that the query names and the caller must have access to, such as `albums/7`, or None."""
        return None

    @classmethod
    @cache
    def known_names(cls) -> frozenset[str]:
        """Return the names that mean something in a request."""
        return super().known_names().union(cls.other_names, cls.names_to_check)


PageNumber = Annotated[int, Field(ge=1, le=MAX_PAGE), DIGITS_ONLY]


class Pages(Query):
    """Page number and size; `per_page` is another name for `perPage`."""

    other_names: ClassVar = {"per_page": "perPage"}
    size_name: ClassVar[str] = "perPage"  # the name that the OpenAPI document lists first

    page: PageNumber = Field(1, description="Page number, from 1.")
    perPage: Annotated[int, Field(ge=1, le=100), DIGITS_ONLY] = Field(  # noqa: N815 - the API's name
        20, description="Number of rows per page."
    )

    def to_page(self) -> Page:
        """Return the requested page number and page size as a `Page`, which store functions take as a parameter."""
        return Page(self.page, self.perPage)

    @property
    def large(self) -> bool:
        """Whether the request asks for a page larger than the default."""
        return bool(self.perPage > Page().size)
