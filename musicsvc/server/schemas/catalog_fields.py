"""Fields of artists, albums and tracks in requests and responses, made from their table (`store/catalog/fields.py`)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import pydantic
from pydantic import AfterValidator, StrictBool, StringConstraints

from musicsvc.server.schemas.answers import Date, Uri
from musicsvc.server.schemas.fields import (
    TRIMMED,
    Description,
    Id,
    Name,
    ReleaseDate,
    Schema,
    TagName,
    Url,
    adding,
    require_unique,
)
from musicsvc.store.catalog import genres, identifiers
from musicsvc.store.catalog.fields import ALL, FIELDS, MAX_PRICE, Field, Kind, Shown

CURRENCIES = frozenset(  # the active currency codes of ISO 4217
    """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
    CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG
    HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL
    MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR
    RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD
    TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
    """.split()  # noqa: SIM905 - a list of words
)


def _has_slug(value: str) -> str:
    if not genres.slug(value):
        raise ValueError("Must contain a letter or a digit.")
    return value


def _known_currency(value: str) -> str:
    if value not in CURRENCIES:
        raise ValueError("Must be an ISO 4217 currency code, such as USD.")
    return value


def _without_sign(value: float) -> float:
    """Replace -0.0 by 0.0, because PostgreSQL keeps the sign and SQLite does not."""
    return value + 0.0


def _identifier(parse: Callable[[str], str]) -> Callable[[str], str]:
    """Return a validator that calls `parse`, and turns the message of its ValueError into a sentence for users."""

    def check(value: str) -> str:
        try:
            return parse(value)
        except ValueError as error:
            raise ValueError(f"{str(error)[0].upper()}{str(error)[1:]}.") from None

    return check


GenreName = Annotated[TagName, AfterValidator(_has_slug), pydantic.Field(examples=["Baroque"])]
Currency = Annotated[
    str,
    StringConstraints(strict=True, strip_whitespace=True),
    AfterValidator(_known_currency),
    pydantic.Field(examples=["USD"], description="ISO 4217.", json_schema_extra={"pattern": "^[A-Z]{3}$"}),
]
Price = Annotated[
    float,
    pydantic.Field(strict=True, ge=0, le=MAX_PRICE, allow_inf_nan=False, examples=[12.5]),
    AfterValidator(_without_sign),
]
Isrc = Annotated[
    str,
    StringConstraints(strict=True, strip_whitespace=True),
    AfterValidator(_identifier(identifiers.isrc)),
    pydantic.Field(
        examples=["GBAYE6800011"],
        description="ISRC (ISO 3901), unique among the tracks that the caller manages. Hyphens are removed.",
        json_schema_extra={"pattern": r"^\s*[A-Za-z]{2}-?[A-Za-z0-9]{3}-?[0-9]{2}-?[0-9]{5}\s*$"},
    ),
]
QueriedIsrc = Annotated[
    str,
    pydantic.Field(strict=True),
    AfterValidator(_identifier(identifiers.isrc)),
    pydantic.Field(
        examples=["GBAYE6800011"],
        description="ISRC (ISO 3901), with or without hyphens.",
        json_schema_extra={"pattern": "^[A-Za-z]{2}-?[A-Za-z0-9]{3}-?[0-9]{2}-?[0-9]{5}$"},
    ),
]
Upc = Annotated[
    str,
    StringConstraints(strict=True, strip_whitespace=True),
    AfterValidator(_identifier(identifiers.upc)),
    pydantic.Field(
        examples=["036000291452"],
        description="A UPC or EAN with a valid check digit, which is the last digit.",
        json_schema_extra={"pattern": r"^\s*[0-9]{12,13}\s*$"},
    ),
]
Tags = Annotated[list[TagName], pydantic.Field(max_length=20, examples=[["keyboard", "teaching"]])]
ArtistIds = Annotated[
    list[Id],
    pydantic.Field(min_length=1, max_length=50, json_schema_extra={"uniqueItems": True}),
    AfterValidator(require_unique),
]
SENT: Mapping[Kind, Any] = {
    "text": Name,
    "paragraph": Description,
    "url": Url,
    "date": ReleaseDate,
    "price": Price,
    "currency": Currency,
    "yes or no": StrictBool,
    "artist": Id,
    "artists": ArtistIds,
    "album": Id,
    "genre": GenreName,
    "words": Tags,
    "isrc": Isrc,
    "upc": Upc,
}
SHOWN: Mapping[Kind, Any] = {"tempo": int, "number": int, "price": float, "yes or no": bool, "url": Uri, "date": Date}


def changing(noun: str) -> Callable[[Schema], Schema]:
    """Return a decorator that adds the fields of an artist, album or track to a schema of changes."""
    return adding({each.name: (_sent(each) | None, _described(each, None)) for each in FIELDS[noun]})


def requiring(noun: str) -> Callable[[Schema], Schema]:
    """Return a decorator that requires the fields in a schema of changes that a new artist, album or track needs."""
    needed = [replace(each, note="") for each in FIELDS[noun] if each.presence == "required"]
    return adding({each.name: (_sent(each), _described(each, ...)) for each in needed})


def showing(noun: str, group: Shown) -> Callable[[Schema], Schema]:
    """Return a decorator that adds a group of fields to a schema of responses."""
    shown = [each for each in ALL[noun] if each.shown == group and each.is_column]
    examples = {each.name: None if each.example == "" else [each.example] for each in shown}
    return adding({each.name: (_shown(each), pydantic.Field(examples=examples[each.name])) for each in shown})


def _sent(field: Field) -> Any:
    """Return the type of a field in requests."""
    if field.choices:
        return Annotated[_literal(field), TRIMMED]
    if field.kind in SENT:
        return SENT[field.kind]
    low, high = field.bounds
    told: Any = {"examples": [98_000], "description": "Milliseconds."} if field.kind == "length" else {}
    return Annotated[int, pydantic.Field(strict=True, ge=low, le=high, **told)]


def _described(field: Field, default: Any) -> Any:
    """Return pydantic's description of a field in requests. Types other than texts have examples of their own."""
    told: dict[str, Any] = {"description": field.note} if field.note else {}
    if field.kind in {"text", "paragraph"}:
        told["examples"] = [field.example]
    return pydantic.Field(default, **told)


def _shown(field: Field) -> Any:
    """Return the type of a field in responses."""
    type_ = _literal(field) if field.choices and field.kind != "key" else SHOWN.get(field.kind, str)
    return type_ | None if field.optional else type_


def _literal(field: Field) -> Any:
    literal: Any = Literal
    return literal[field.choices]
