"""Servers of other frameworks that return the same bytes, written as their tutorials do.

    python benchmarks/peer_servers.py NAME PORT FILE

NAME: `granian` and `Robyn` return the bytes of the file; `FastAPI` reads the newest artists from the file, a database,
with SQLAlchemy. They run without token check, limits and log.
"""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

PER_PAGE = 50
FILE = "PEER_FILE"  # an environment variable for granian's worker
JSON = "application/json"


def run_granian(port: int, file: str) -> None:
    """Serve the file with granian's own interface, RSGI."""
    from granian import Granian  # noqa: PLC0415 - each peer needs only its own packages

    os.environ[FILE] = file  # noqa: TID251 - of its worker
    Granian("peer_servers:rsgi", "127.0.0.1", port, interface="rsgi", log_enabled=False).serve()


class Rsgi:
    """An RSGI application that returns the bytes of a file."""

    def __init__(self) -> None:
        self._body = b""

    def __rsgi_init__(self, _loop: object) -> None:
        self._body = Path(os.environ[FILE]).read_bytes()  # noqa: TID251 - see run_granian

    async def __rsgi__(self, _scope: object, protocol: Any) -> None:
        protocol.response_bytes(200, [("content-type", JSON)], self._body)


rsgi = Rsgi()


def run_robyn(port: int, file: str) -> None:
    """Serve the file with Robyn."""
    sys.argv = sys.argv[:1]  # it reads options of its own
    from robyn import Response, Robyn  # noqa: PLC0415 - as above

    app, body = Robyn(__file__), Path(file).read_bytes()

    @app.get("/")
    async def read() -> Response:
        return Response(status_code=200, headers={"content-type": JSON}, description=body)

    app.start(host="127.0.0.1", port=port)


def run_fastapi(port: int, file: str) -> None:
    """Serve the newest artists of the database with FastAPI, SQLAlchemy and uvicorn."""
    import uvicorn  # noqa: PLC0415 - as above
    from fastapi import Depends, FastAPI  # noqa: PLC0415 - as above
    from pydantic import BaseModel, ConfigDict, field_validator  # noqa: PLC0415 - as above
    from sqlalchemy import ForeignKey, create_engine, func, select  # noqa: PLC0415 - as above
    from sqlalchemy.orm import DeclarativeBase, Mapped, Session, column_property, mapped_column  # noqa: PLC0415 - as above

    class Base(DeclarativeBase):
        pass

    class AlbumArtist(Base):
        __tablename__ = "album_artist"
        album_id: Mapped[int] = mapped_column(primary_key=True)
        artist_id: Mapped[int] = mapped_column(ForeignKey("artist.id"), primary_key=True)

    class TrackArtist(Base):
        __tablename__ = "track_artist"
        track_id: Mapped[int] = mapped_column(primary_key=True)
        artist_id: Mapped[int] = mapped_column(ForeignKey("artist.id"), primary_key=True)

    class Artist(Base):
        __tablename__ = "artist"
        id: Mapped[int] = mapped_column(primary_key=True)
        name: Mapped[str]
        image_small: Mapped[str | None]
        verified: Mapped[bool]
        created_at: Mapped[int]

    for name, table in (("albums_count", AlbumArtist), ("tracks_count", TrackArtist)):
        counted = select(func.count()).where(table.artist_id == Artist.id).correlate_except(table).scalar_subquery()
        setattr(Artist, name, column_property(counted))

    class ArtistOut(BaseModel):
        model_config = ConfigDict(from_attributes=True)
        id: int
        name: str
        image_small: str | None
        verified: bool
        model_type: str = "artist"
        created_at: str
        albums_count: int
        tracks_count: int

        @field_validator("created_at", mode="before")
        @classmethod
        def write_time(cls, value: int) -> str:
            return datetime.fromtimestamp(value / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    class Page(BaseModel):
        current_page: int
        from_: int
        to: int
        per_page: int
        last_page: int
        total: int
        data: list[ArtistOut]
        model_config = ConfigDict(alias_generator=lambda name: name.rstrip("_"), populate_by_name=True)

    class Answer(BaseModel):
        status: str = "success"
        artists: Page

    engine = create_engine(f"sqlite:///{file}", connect_args={"check_same_thread": False})
    app = FastAPI()

    def session() -> Any:
        with Session(engine) as opened:
            yield opened

    @app.get("/", response_model=Answer)
    def read(opened: Annotated[Session, Depends(session)], page: int = 1) -> Any:
        total = opened.scalar(select(func.count()).select_from(Artist)) or 0
        first = (page - 1) * PER_PAGE
        rows = opened.scalars(select(Artist).order_by(Artist.id.desc()).limit(PER_PAGE).offset(first)).all()
        found = Page(
            current_page=page,
            from_=first + 1,
            to=first + len(rows),
            per_page=PER_PAGE,
            last_page=max(1, -(-total // PER_PAGE)),
            total=total,
            data=[ArtistOut.model_validate(row) for row in rows],
        )
        return Answer(artists=found)

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


PEERS = {"granian": run_granian, "Robyn": run_robyn, "FastAPI": run_fastapi}

if __name__ == "__main__":
    PEERS[sys.argv[1]](int(sys.argv[2]), sys.argv[3])
