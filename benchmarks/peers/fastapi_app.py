"""The lists of albums and artists in FastAPI, SQLAlchemy and pydantic, written as their tutorials do.

    CATALOG=FILE uvicorn --app-dir benchmarks/peers fastapi_app:app

It reads the SQLite database of musicsvc and returns the same JSON. Relations are loaded eagerly (`selectinload`), which
is the faster of the ways that SQLAlchemy's documentation shows.
"""

import hashlib
import math
import os
import time
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, field_validator
from sqlalchemy import ForeignKey, Select, create_engine, func, select
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    column_property,
    mapped_column,
    relationship,
    selectinload,
    undefer,
)

engine = create_engine(f"sqlite:///{os.environ['CATALOG']}", connect_args={"check_same_thread": False})
app = FastAPI()
Item = TypeVar("Item")


class Base(DeclarativeBase):
    pass


class Account(Base):
    __tablename__ = "account"

    id: Mapped[int] = mapped_column(primary_key=True)
    api_access: Mapped[bool]
    suspended_at: Mapped[int | None]


class Token(Base):
    __tablename__ = "token"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("account.id"))
    digest: Mapped[bytes] = mapped_column(unique=True)
    expires_at: Mapped[int]
    revoked_at: Mapped[int | None]
    user: Mapped[Account] = relationship(lazy="joined")


class AlbumArtist(Base):
    __tablename__ = "album_artist"

    album_id: Mapped[int] = mapped_column(ForeignKey("album.id"), primary_key=True)
    artist_id: Mapped[int] = mapped_column(ForeignKey("artist.id"), primary_key=True)
    position: Mapped[int]


class TrackArtist(Base):
    __tablename__ = "track_artist"

    track_id: Mapped[int] = mapped_column(ForeignKey("track.id"), primary_key=True)
    artist_id: Mapped[int] = mapped_column(ForeignKey("artist.id"), primary_key=True)
    position: Mapped[int]


class Artist(Base):
    __tablename__ = "artist"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    image_small: Mapped[str | None]
    verified: Mapped[bool]
    created_at: Mapped[int]
    albums_count: Mapped[int] = column_property(
        select(func.count()).where(AlbumArtist.artist_id == id).correlate_except(AlbumArtist).scalar_subquery(),
        deferred=True,
    )
    tracks_count: Mapped[int] = column_property(
        select(func.count()).where(TrackArtist.artist_id == id).correlate_except(TrackArtist).scalar_subquery(),
        deferred=True,
    )


class TrackPlays(Base):
    __tablename__ = "track_plays"

    track_id: Mapped[int] = mapped_column(ForeignKey("track.id"), primary_key=True)
    plays: Mapped[int]


class Track(Base):
    __tablename__ = "track"

    id: Mapped[int] = mapped_column(primary_key=True)
    album_id: Mapped[int | None] = mapped_column(ForeignKey("album.id"))
    name: Mapped[str]
    release_date: Mapped[str | None]
    own_image: Mapped[str | None] = mapped_column("image")
    duration: Mapped[int]
    description: Mapped[str | None]
    album: Mapped["Album | None"] = relationship(back_populates="tracks")
    artists: Mapped[list[Artist]] = relationship(secondary="track_artist", order_by=TrackArtist.position)
    counter: Mapped[TrackPlays | None] = relationship(lazy="joined")

    @property
    def image(self) -> str | None:
        return self.own_image or (self.album.image if self.album else None)


class Album(Base):
    __tablename__ = "album"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    image: Mapped[str | None]
    release_date: Mapped[str | None]
    description: Mapped[str | None]
    created_at: Mapped[int]
    upc: Mapped[str | None]
    label: Mapped[str | None]
    tracks: Mapped[list[Track]] = relationship(back_populates="album", order_by=Track.id)
    artists: Mapped[list[Artist]] = relationship(secondary="album_artist", order_by=AlbumArtist.position)

    @property
    def plays(self) -> int:
        return sum(track.counter.plays for track in self.tracks if track.counter)


class Out(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class Dated(Out):
    created_at: str

    @field_validator("created_at", mode="before")
    @classmethod
    def format_time(cls, value: int) -> str:
        return datetime.fromtimestamp(value / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class ArtistSummary(Out):
    id: int
    name: str
    image_small: str | None
    verified: bool


class ArtistOut(Dated, ArtistSummary):
    model_type: Literal["artist"] = "artist"
    albums_count: int
    tracks_count: int


class TrackOut(Out):
    id: int
    name: str
    release_date: str | None
    image: str | None
    duration: int
    description: str | None
    artists: list[ArtistSummary]


class AlbumOut(Dated):
    id: int
    name: str
    image: str | None
    release_date: str | None
    description: str | None
    tracks: list[TrackOut]
    artists: list[ArtistSummary]
    model_type: Literal["album"] = "album"
    plays: int
    upc: str | None
    label: str | None


class Page(BaseModel, Generic[Item]):
    current_page: int
    first: int | None = Field(serialization_alias="from")
    to: int | None
    per_page: int
    last_page: int
    total: int
    data: list[Item]


class AlbumsOut(BaseModel):
    status: Literal["success"] = "success"
    albums: Page[AlbumOut]


class ArtistsOut(BaseModel):
    status: Literal["success"] = "success"
    artists: Page[ArtistOut]


def get_session():
    with Session(engine) as session:
        yield session


Database = Annotated[Session, Depends(get_session)]


def get_caller(
    session: Database, credentials: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]
) -> Account:
    digest = hashlib.sha256(credentials.credentials.encode()).digest()
    token = session.scalars(select(Token).where(Token.digest == digest)).one_or_none()
    if token is None or token.revoked_at is not None or token.expires_at <= time.time() * 1_000_000:
        raise HTTPException(401, "Unknown token")
    if token.user.suspended_at is not None or not token.user.api_access:
        raise HTTPException(403, "No access")
    return token.user


Caller = Annotated[Account, Depends(get_caller)]
Number = Annotated[int, Query(ge=1)]
Size = Annotated[int, Query(alias="perPage", ge=1, le=100)]


def paginate(session: Session, table: Any, query: Select[Any], page: int, size: int) -> dict[str, Any]:
    total = session.scalar(select(func.count()).select_from(table)) or 0
    rows = session.scalars(query.order_by(table.id.desc()).limit(size).offset((page - 1) * size)).all()
    first = (page - 1) * size + 1
    return {
        "current_page": page,
        "first": first if rows else None,
        "to": first + len(rows) - 1 if rows else None,
        "per_page": size,
        "last_page": max(1, math.ceil(total / size)),
        "total": total,
        "data": rows,
    }


@app.get("/api/v1/albums", response_model=AlbumsOut)
def list_albums(session: Database, _: Caller, page: Number = 1, size: Size = 20) -> Any:
    query = select(Album).options(selectinload(Album.artists), selectinload(Album.tracks).selectinload(Track.artists))
    return {"albums": paginate(session, Album, query, page, size)}


@app.get("/api/v1/artists", response_model=ArtistsOut)
def list_artists(session: Database, _: Caller, page: Number = 1, size: Size = 20) -> Any:
    query = select(Artist).options(undefer(Artist.albums_count), undefer(Artist.tracks_count))
    return {"artists": paginate(session, Artist, query, page, size)}
