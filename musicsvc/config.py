"""Settings. Precedence, from low to high: defaults, the TOML file, MUSICSVC_* variables, command-line options."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import platformdirs
from pydantic import BaseModel, ByteSize, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from musicsvc import config_faults, permissions, secret_files
from musicsvc.environment import PREFIX, data_dir
from musicsvc.errors import Failure, Invalid
from musicsvc.secret_files import Secret
from musicsvc.setting_types import (
    MOST,
    Address,
    BasePath,
    Count,
    Days,
    File,
    Host,
    Network,
    Origin,
    Port,
    Positive,
    PostgresAddress,
    Rate,
    RootUrl,
    Seconds,
    Size,
)
from musicsvc.wording import explain_validation

# The settings that may contain a secret; keys of TLS are in files.
SECRETS = ("database_url", "database_read_url", "database_direct_url")


def _default_data_dir() -> Path:
    try:
        return platformdirs.user_data_path("musicsvc", appauthor=False)
    except RuntimeError:
        fault = f"The user of this process (uid {os.geteuid()}) has no home folder"
        raise Failure(f"{fault} for a default data folder. Set MUSICSVC_DATA_DIR.") from None


class Section(BaseModel):
    """Base class of the tables in the TOML settings file. Unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


class Server(Section):
    """Addresses, TLS, timeouts and limits of the server."""

    host: Host = "127.0.0.1"
    port: Port = 8080
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    init: bool = False  # create a missing database also where it was named
    public_url: RootUrl = None
    base_path: BasePath = ""
    trusted_proxies: tuple[Network, ...] = ("127.0.0.0/8", "::1/128")
    cors_origins: tuple[Origin, ...] = ()
    local_http: bool = False
    tls_cert: File | None = None
    tls_key: File | None = None
    handshake_timeout: Seconds = 5.0
    head_timeout: Seconds = 10.0
    body_timeout: Seconds = 15.0
    write_timeout: Seconds = 30.0  # for each 64 KiB of a response
    keepalive_timeout: Seconds = 15.0
    shutdown_delay: Annotated[float, Field(ge=0, le=MOST)] = 0.0  # for proxies to notice that /readyz is 503
    shutdown_timeout: Annotated[float, Field(ge=0, le=MOST)] = 10.0
    answer_memory: Annotated[Size, Field(ge=1 << 20)] = ByteSize(256 << 20)  # of each worker
    answer_cache: Annotated[Size, Field(ge=0)] = ByteSize(64 << 20)  # of each worker; 0: no cache
    max_connections: Positive = 10_000  # of all workers
    max_connections_per_address: Count = 100  # of each worker; 0: unlimited

    @model_validator(mode="after")
    def _one_path(self) -> Self:
        path = urlsplit(self.public_url or "").path
        if path not in {"", self.base_path}:
            raise ValueError(
                f"server.public_url has the path {path}, and server.base_path is {self.base_path or 'empty'}:"
                " set server.base_path to the path below which clients reach the service"
            )
        return self


class Database(Section):
    """Connections to PostgreSQL (docs/postgres.md)."""

    connections: Annotated[int, Field(ge=4, le=100)] = 10  # of each worker
    wait_timeout: Annotated[float, Field(ge=0, le=MOST)] = 0.0  # seconds


class Registration(Section):
    open: bool = True
    grants_access: bool = False


class Access(Section):
    """The address to contact for API access, named in error messages."""

    contact_email: str | None = None


class Plays(Section):
    """Days for which plays are stored one by one (0: all), and the plays that accounts may report of their own."""

    keep_days: Days = 0
    own: bool = True
    own_daily: Positive = 600  # by day played


class Limits(Section):
    """Rate limits (docs/limits.md)."""

    enabled: bool = True
    local: bool = False
    token: Rate = "300/minute"  # noqa: S105 - a rate, no secret
    address: Rate = "60/minute"
    registrations: Rate = Field("10/hour", alias="register")  # pydantic has a `register` of its own
    password_links: Rate = "20/minute"  # noqa: S105 - a rate, no secret
    exports: Rate = "20/minute"
    cover_art: Rate = "30/minute"
    reports: Rate = "60/minute"
    session: Rate = "300/minute"
    sign_in: Rate = "60/hour"


class Abuse(Section):
    """Thresholds of abuse handling, which revokes tokens (docs/abuse.md)."""

    refusals: Positive = 100
    refusal_seconds: Positive = 300
    probes: Positive = 50
    probe_seconds: Positive = 60
    probe_success_percent: Annotated[int, Field(ge=0, le=100)] = 10
    terminate_after: Count = 3  # revocations for abuse; 0: never


class Activity(Section):
    """The number of days for which calls are logged, and the log file. By default, the file is in the data folder."""

    keep_days: Annotated[Days, Field(ge=1)] = 90
    file: File | None = None


class Metrics(Section):
    """Networks that may read /metrics, in addition to this machine."""

    allow: tuple[Network, ...] = ()


class Log(Section):
    """The server's log on stderr; `requests` adds a line for each request."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "text", "json"] = "auto"
    requests: bool = False


class Backups(Section):
    """Scheduled backups; `every_hours = 0` turns them off."""

    every_hours: Count = 24
    keep: Positive = 7
    folder: File | None = None


class Settings(BaseSettings):
    """All settings. They are read once, at start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", frozen=True, env_ignore_empty=True)

    data_dir: File = Field(default_factory=_default_data_dir)
    database_url: Address = ""
    database_read_url: PostgresAddress = ""
    database_direct_url: PostgresAddress = ""
    server: Server = Server()
    database: Database = Database()
    registration: Registration = Registration()
    access: Access = Access()
    plays: Plays = Plays()
    limits: Limits = Limits()
    abuse: Abuse = Abuse()
    activity: Activity = Activity()
    metrics: Metrics = Metrics()
    log: Log = Log()
    backups: Backups = Backups()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic-settings defines the signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the same
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the same
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return env_settings, init_settings

    @property
    def store_url(self) -> str:
        """The URL of the database: `database_url`, or by default a SQLite file in the data folder."""
        return self.database_url or f"sqlite:///{self.data_dir / 'musicsvc.db'}"

    @property
    def direct_url(self) -> str:
        """The URL for work that needs a session: `database_direct_url`, or by default that of the database."""
        is_file = self.store_url.startswith("sqlite:///")
        return self.store_url if is_file else self.database_direct_url or self.store_url

    @property
    def creates_database(self) -> bool:
        """True if `serve` may create a missing database: a named one may be mistyped, or on a disk not mounted yet."""
        return self.server.init or not self.model_fields_set & {"data_dir", "database_url"}

    @property
    def backup_folder(self) -> Path:
        """The folder of backups: `backups.folder`, or by default `backups` beside the SQLite database."""
        return self.backups.folder or self.own_folder / "backups"

    @property
    def own_folder(self) -> Path:
        """The folder of the SQLite database; with PostgreSQL, the data folder."""
        file = self.store_url.removeprefix("sqlite:///")
        return self.data_dir if "://" in file else Path(file).parent

    @property
    def place(self) -> Path:
        """The SQLite file; with PostgreSQL, a name in the data folder. Servers that run note addresses beside it."""
        file = self.store_url.removeprefix("sqlite:///")
        parts = urlsplit(file)
        named = re.sub(r"[^\w.-]", "-", f"postgresql-{parts.netloc.rpartition('@')[2]}{parts.path}")
        return self.data_dir / named if "://" in file else Path(file)

    @property
    def temporary_folder(self) -> Path:
        """The folder of temporary files of the server, and of all processes if the system has none."""
        return self.own_folder / "temporary"

    @property
    def hosted(self) -> bool:
        """True if the service has a public address (docs/proxy.md)."""
        return self.server.public_url is not None


def load(config: Path | None = None, options: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings. `options`: command-line values by setting name, such as `server.port`; None is ignored.

    If a setting is invalid, raises Failure with its name and source, or Invalid for an option.
    """
    file = file_of(config)
    written = _read_toml(file, required=config is not None)
    secrets = _secrets()
    try:
        settings = Settings(**written | {name: secret.value for name, secret in secrets.items()})
    except ValidationError as error:
        place = error.errors()[0]["loc"]
        if place and (secret := secrets.get(str(place[0]))) is not None:
            source = secret.source
        else:
            source = config_faults.source(error, file)
        raise Failure(config_faults.message(error, _names(), source=source)) from None
    except SettingsError:
        raise Failure(config_faults.json_message(_names())) from None
    for name, value in (options or {}).items():
        if value is not None:
            settings = _with_option(settings, name, value)
    return settings


def _secrets() -> dict[str, Secret]:
    """Map the names of settings to their values, where a variable or a file holds them as a secret."""
    return {name: secret for name in SECRETS if (secret := secret_files.find(name)) is not None}


def unknown_variables() -> list[str]:
    """Return the names of environment variables that begin with MUSICSVC_ but match no setting."""
    return config_faults.unknown_variables(_names())


def file_of(config: Path | None) -> Path:
    """Return `config` if given, else the default path of the settings file. The file may not exist."""
    return config or Path(data_dir() or _default_data_dir()) / "config.toml"


def origins(settings: Settings, config: Path | None) -> dict[str, str]:
    """Map the dotted name of each setting to its source: a variable, the settings file, or `default`."""
    file = file_of(config)
    written = _read_toml(file, required=config is not None)
    found = {}
    for name in flat(settings):
        section, _, key = name.rpartition(".")
        in_file = key in (written.get(section, {}) if section else written)
        found[name] = config_faults.variable_of(name.split(".")) or (str(file) if in_file else "default")
    return found | {name: secret.source for name, secret in _secrets().items()}


def flat(settings: Settings) -> dict[str, Any]:
    """Map the dotted name of each setting, such as `server.port`, to its value as JSON."""
    tables = settings.model_dump(mode="json")
    return {
        f"{name}.{key}" if key else name: value
        for name, part in tables.items()
        for key, value in (part.items() if isinstance(part, dict) else [("", part)])
    }


def _names() -> dict[str, Any]:
    """Map the dotted name of each setting to its default."""
    return flat(Settings.model_construct(data_dir=Path()))


def _with_option(settings: Settings, name: str, value: object) -> Settings:
    section, _, key = name.rpartition(".")
    if not section:
        return settings.model_copy(update={key: value})
    table: Section = getattr(settings, section)
    try:
        checked = type(table).model_validate({**table.model_dump(), key: value})
    except ValidationError as error:
        problem = f"{explain_validation(dict(error.errors()[0]))}."
        raise Invalid({name: problem}, config_faults.message(error, _names(), section)) from None
    return settings.model_copy(update={section: checked})


def _read_toml(file: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))  # Windows' editors write a byte order mark
    except FileNotFoundError:
        if required or file.is_symlink():
            cause = "--config" if required else "the link"
            raise Failure(f"There is no settings file {file}. Create it, or correct {cause}.") from None
        return {}
    except UnicodeDecodeError:
        raise Failure(f"The settings file {file} is not valid UTF-8. Save it in this encoding.") from None
    except (OSError, ValueError) as error:
        denied = permissions.denial(file) if isinstance(error, PermissionError) else None
        fault = getattr(error, "strerror", None) or error
        raise Failure(str(denied or f"The settings file {file} cannot be read: {fault}.")) from None
