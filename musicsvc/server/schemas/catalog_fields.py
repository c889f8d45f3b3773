"""Types of the fields of artists, albums and tracks in request bodies."""

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from musicsvc.server.schemas.fields import TRIMMED, TagName
from musicsvc.store.catalog import genres, identifiers

MAX_PRICE = 1_000_000_000
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


GenreName = Annotated[TagName, AfterValidator(_has_slug), Field(examples=["Baroque"])]
Currency = Annotated[
    str,
    StringConstraints(strict=True, strip_whitespace=True),
    AfterValidator(_known_currency),
    Field(examples=["USD"], description="ISO 4217.", json_schema_extra={"pattern": "^[A-Z]{3}$"}),
]
Price = Annotated[
    float,
    Field(strict=True, ge=0, le=MAX_PRICE, allow_inf_nan=False, examples=[12.5]),
    AfterValidator(_without_sign),
]
Isrc = Annotated[
    str,
    StringConstraints(strict=True, strip_whitespace=True),
    AfterValidator(_identifier(identifiers.isrc)),
    Field(
        examples=["GBAYE6800011"],
        description="ISRC (ISO 3901), unique among the tracks that the caller manages. Hyphens are removed.",
        json_schema_extra={"pattern": r"^\s*[A-Za-z]{2}-?[A-Za-z0-9]{3}-?[0-9]{2}-?[0-9]{5}\s*$"},
    ),
]
QueriedIsrc = Annotated[
    str,
    Field(strict=True),
    AfterValidator(_identifier(identifiers.isrc)),
    Field(
        examples=["GBAYE6800011"],
        description="ISRC (ISO 3901), with or without hyphens.",
        json_schema_extra={"pattern": "^[A-Za-z]{2}-?[A-Za-z0-9]{3}-?[0-9]{2}-?[0-9]{5}$"},
    ),
]
Upc = Annotated[
    str,
    StringConstraints(strict=True, strip_whitespace=True),
    AfterValidator(_identifier(identifiers.upc)),
    Field(
        examples=["036000291452"],
        description="A UPC or EAN with a valid check digit, which is the last digit.",
        json_schema_extra={"pattern": r"^\s*[0-9]{12,13}\s*$"},
    ),
]
Key = Annotated[Literal["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"], TRIMMED]
Scale = Annotated[Literal["Major", "Minor"], TRIMMED]
Licensing = Annotated[Literal["non_exclusive_only", "both", "exclusive_only"], TRIMMED]
Exclusive = Annotated[Literal["available", "not_available", "sold"], TRIMMED]
Tags = Annotated[list[TagName], Field(max_length=20, examples=[["keyboard", "teaching"]])]
TrackNumber = Annotated[int, Field(strict=True, ge=1, le=identifiers.MOST_TRACKS)]
DiscNumber = Annotated[int, Field(strict=True, ge=1, le=identifiers.MOST_DISCS)]
