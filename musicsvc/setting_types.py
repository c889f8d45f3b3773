"""The types of settings, each with the rule that its values follow."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field

from musicsvc.wording import is_url

ROOT_URL = re.compile(r"https?://[^\s/?#@]*[^\s/?#@:](?:/[^\s?#]*)?")
HOST = re.compile(r"(?=[^A-Za-z]*+[A-Za-z])[A-Za-z0-9][A-Za-z0-9._-]*+")  # 256.1.1.1 is none
ORIGIN = re.compile(r"https?://[a-z0-9.\-\[\]:]*[a-z0-9.\-\]]")
NOT_NAMED = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # control characters, and bytes that SQLite cannot open
POSTGRES = ("postgresql://", "postgres://")
USUAL_PORTS = {"http": 80, "https": 443}
PERIODS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
BASE_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)*")  # characters that no proxy or browser encodes
SIZE = re.compile(r"[0-9]*+\.?[0-9]*+ *+[A-Za-z]*+")
RATE = re.compile(rf"([1-9][0-9]{{0,8}})/({'|'.join(PERIODS)})")


def _file(value: object) -> object:
    if isinstance(value, str):
        if not value or NOT_NAMED.search(value):
            raise ValueError("must name a file or folder, in UTF-8; leave the setting out for its default")
        if value.startswith("~"):
            raise ValueError(f"{value!r} begins with ~, which only a shell replaces; write the whole path")
    return value


def _host(value: str) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        if not HOST.fullmatch(value):
            raise ValueError(
                f"{value!r} is not an address such as 127.0.0.1 or a name of this machine; the port is server.port"
            ) from None
    return value


def _root_url(value: str | None) -> str | None:
    if value is not None and not value.startswith(("http://", "https://")):
        raise ValueError("must start with http:// or https://")
    if value and not (ROOT_URL.fullmatch(value) and is_url(value)):
        raise ValueError(f"{value!r} is not the root of a service such as https://music.example")
    return f"{_as_browsers_do(value)}{urlsplit(value).path}".rstrip("/") if value else None


def _base_path(value: str) -> str:
    if not BASE_PATH.fullmatch(value):
        rule = "begins with / and has no slash at the end, such as /music; leave it empty to serve at the root"
        raise ValueError(f"{value!r} is not a valid base path, which {rule}")
    return value


def _network(value: str) -> str:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise ValueError(f"{value!r} is not a valid address or network such as 10.1.2.0/24") from None
    return value


def _size(value: object) -> object:
    if isinstance(value, str) and not SIZE.fullmatch(value.strip()):  # pydantic reads 64,5MiB as 64 bytes
        raise ValueError(f"{value!r} is not a number of bytes such as 268435456 or 256MiB")
    return value


def _rate(value: str) -> str:
    if not RATE.fullmatch(value):
        raise ValueError(f"{value!r} is not a valid rate such as 300/minute (second, minute, hour, day)")
    return value


def _origin(value: str) -> str:
    if not (ORIGIN.fullmatch(value) and is_url(value)):
        raise ValueError(f"{value!r} is not an origin such as https://app.example: scheme, host and port, no path")
    return _as_browsers_do(value)


def _as_browsers_do(url: str) -> str:
    """Return the origin of a URL as browsers name it: in small letters, in ASCII, without the usual port."""
    parts = urlsplit(url)
    host = parts.netloc.lower() if parts.port is None else parts.netloc.lower().rpartition(":")[0]
    if not host.isascii():
        import idna  # noqa: PLC0415 - large, and rarely needed

        host = idna.encode(host, uts46=True).decode()  # an IDNAError is a ValueError
    usual = parts.port in {None, USUAL_PORTS[parts.scheme]}
    return f"{parts.scheme}://{host}" + ("" if usual else f":{parts.port}")


def check_address(value: str) -> str:
    """Return the URL of a database. Raises ValueError if it is one of SQLite without a file."""
    file = value.removeprefix("sqlite:///")
    # An in-memory database of SQLite has no file and is lost with the process.
    if value.startswith("sqlite:") and (file == value or not file.strip(" /.") or file.startswith((":memory:", "?"))):
        raise ValueError(f"{value!r} does not name a file; write sqlite:////path/to/file.db")
    return value


def _postgres_address(value: str) -> str:
    if value and not value.startswith(POSTGRES):
        raise ValueError("must start with postgresql://")
    return value


File = Annotated[Path, BeforeValidator(_file)]
Host = Annotated[str, AfterValidator(_host)]
RootUrl = Annotated[str | None, AfterValidator(_root_url)]
BasePath = Annotated[str, AfterValidator(_base_path)]
Origin = Annotated[str, AfterValidator(_origin)]
Address = Annotated[str, AfterValidator(check_address)]
PostgresAddress = Annotated[str, AfterValidator(_postgres_address)]
Size = Annotated[ByteSize, BeforeValidator(_size)]
Port = Annotated[int, Field(ge=0, le=65_535)]
Network = Annotated[str, AfterValidator(_network)]
Rate = Annotated[str, AfterValidator(_rate)]
# Times in microseconds and sums of these numbers fit into the 64 bits of the databases.
MOST, MOST_DAYS = 1_000_000_000, 10_000_000
Count = Annotated[int, Field(ge=0, le=MOST)]
Positive = Annotated[int, Field(ge=1, le=MOST)]
Seconds = Annotated[float, Field(gt=0, le=MOST)]
Days = Annotated[int, Field(ge=0, le=MOST_DAYS)]


def rate(text: str) -> tuple[int, int]:
    """Parse a rate limit such as `300/minute` into the number of requests and the period in seconds."""
    amount, _, period = text.partition("/")
    return int(amount), PERIODS[period]
