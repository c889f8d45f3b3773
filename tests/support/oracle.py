"""Expected figures, counted from single plays, likes and reposts with plain sets.

It shares no code with the program but the names of the periods, which it writes down again.
"""

import functools
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any, NamedTuple, Self

JSON = dict[str, Any]
LENGTHS = {"7-days": 7, "30-days": 30, "90-days": 90, "1-year": 365}
TIMEFRAMES = {"7d": "7-days", "30d": "30-days", "90d": "90-days", "1y": "1-year"}
MICROSECONDS = 1_000_000
DAY = 86_400 * MICROSECONDS
ONE_DAY = timedelta(days=1)


Period = str | tuple[str, str]  # a name, or the first and the last date


class Named(NamedTuple):
    """A period of the command line: compared with the days before it (0), the months before it, or nothing (-1)."""

    name: str
    first: str
    last: str
    months: int = 0


AnyPeriod = Period | Named


class PlayOf(NamedTuple):
    """An accepted play; `at` is in microseconds."""

    track: int
    at: int
    listener: str
    duration_ms: int | None = None


class GivenTo(NamedTuple):
    """A like or repost that was not withdrawn."""

    track: int
    at: int


@dataclass
class Past:
    """All plays, likes and reposts, and the tracks of albums and artists. Deleted tracks are not in `names`."""

    names: dict[int, str] = field(default_factory=dict)
    album_names: dict[int, str] = field(default_factory=dict)
    artist_names: dict[int, str] = field(default_factory=dict)
    on_album: dict[int, list[int]] = field(default_factory=dict)
    by_artist: dict[int, list[int]] = field(default_factory=dict)
    albums_by_artist: dict[int, list[int]] = field(default_factory=dict)
    plays: list[PlayOf] = field(default_factory=list)
    likes: list[GivenTo] = field(default_factory=list)
    reposts: list[GivenTo] = field(default_factory=list)

    def __deepcopy__(self, memo: object) -> Self:
        """Copy the lists; plays, of which there may be thousands, never change."""

        def copied(lists: dict[int, list[int]]) -> dict[int, list[int]]:
            return {number: [*members] for number, members in lists.items()}

        names = dict(self.names), dict(self.album_names), dict(self.artist_names)
        lists = copied(self.on_album), copied(self.by_artist), copied(self.albums_by_artist)
        return type(self)(*names, *lists, [*self.plays], [*self.likes], [*self.reposts])

    def tracks(self, noun: str, number: int) -> list[int]:
        """Return the tracks of a subject."""
        return {"track": [number], "album": self.on_album.get(number, []), "artist": self.by_artist.get(number, [])}[
            noun
        ]

    def figures(self, noun: str, number: int, period: AnyPeriod, now: int) -> JSON:
        """Return the four blocks of figures and the period."""
        tracks = self.tracks(noun, number)
        start, end, *earlier = bounds(period, now)
        first, last = day(start), day(end - 1)
        mine = [play for play in self.plays if play.track in tracks]
        within = [play for play in mine if start <= play.at < end]
        before = [play for play in mine if earlier[0] <= play.at < earlier[1]]
        return {
            "plays": {"total": len(mine), "period": len(within)},
            "listeners": {"total": people(mine), "unique": people(within)},
            "engagement": {
                "likes": sum(like.track in tracks and first <= day(like.at) <= last for like in self.likes),
                "reposts": sum(given.track in tracks and first <= day(given.at) <= last for given in self.reposts),
            },
            "growth": {
                "plays_change": growth(len(within), len(before)),
                "listeners_change": growth(people(within), people(before)),
                "first_play": min((day(play.at).isoformat() for play in mine), default=None),
            },
            "period": {"name": name_of(period), "start": first.isoformat(), "end": last.isoformat()},
        }

    def first_plays(self, noun: str, number: int, period: AnyPeriod, now: int) -> date | None:
        """Return the day of the first play of a subject if it is after the start of the window before, else None."""
        tracks = self.tracks(noun, number)
        first = min((day(play.at) for play in self.plays if play.track in tracks), default=None)
        start, _, earlier, until = bounds(period, now)
        compared = (earlier, until) != (start, start)
        return first if compared and first is not None and first > day(earlier) else None

    def album(self, number: int, period: AnyPeriod, now: int) -> JSON:
        """Return an album's figures with the rows of its tracks."""
        rows = self._rows("track", self.on_album.get(number, []), self.names, period, now)
        return self.figures("album", number, period, now) | {"tracks": rows}

    def artist(self, number: int, period: AnyPeriod, now: int, followers: int) -> JSON:
        """Return an artist's figures with its most played tracks and albums."""
        tracks, albums = self.by_artist.get(number, []), self.albums_by_artist.get(number, [])
        return self.figures("artist", number, period, now) | {
            "followers": followers,
            "top_tracks": self._rows("track", tracks, self.names, period, now)[:10],
            "top_albums": self.albums(albums, tracks, period, now)[:10],
            "tracks_count": sum(track in self.names for track in tracks),
            "albums_count": len(albums),
        }

    def albums(self, albums: list[int], tracks: list[int], period: AnyPeriod, now: int) -> list[JSON]:
        """Return rows of albums with what is played of these tracks on them, ordered by that."""
        rows = self._rows("album", albums, self.album_names, period, now)
        start, end, *_ = bounds(period, now)
        for row in rows:
            own = [p for p in self.plays if p.track in tracks and p.track in self.on_album.get(row["id"], [])]
            inside = sum(start <= play.at < end for play in own)
            row["plays"] = row["plays"] | {"of_artist": {"total": len(own), "period": inside}}

        def order(row: JSON) -> tuple[int, ...]:
            own = row["plays"]["of_artist"]
            return -own["period"], -own["total"], -row["id"]

        return sorted(rows, key=order)

    def _rows(self, noun: str, numbers: list[int], names: dict[int, str], period: AnyPeriod, now: int) -> list[JSON]:
        rows = []
        for number in filter(names.__contains__, numbers):  # deleted ones have no rows
            figures = self.figures(noun, number, period, now)
            unique = {"unique": figures["listeners"]["unique"]}
            rows.append({"id": number, "name": names[number], "plays": figures["plays"], "listeners": unique})
        return sorted(rows, key=lambda row: (-row["plays"]["period"], -row["plays"]["total"], -row["id"]))

    def chart(self, noun: str, number: int, timeframe: AnyPeriod, now: int) -> JSON:
        """Return a point per day, and the totals."""
        start, end, *_ = bounds(TIMEFRAMES[timeframe] if isinstance(timeframe, str) else timeframe, now)
        days = [day(at) for at in range(start, end, DAY)]
        points = [{"date": each.isoformat()} | self._point(noun, number, each, each) for each in days]
        totals = self._point(noun, number, days[0], days[-1])
        return {"timeframe": name_of(timeframe), "interval": "day", "points": points, "totals": totals}

    def _point(self, noun: str, number: int, first: date, last: date) -> JSON:
        tracks = self.tracks(noun, number)
        plays = [play for play in self.plays if play.track in tracks and first <= day(play.at) <= last]
        likes, reposts = (
            sum(given.track in tracks and first <= day(given.at) <= last for given in some)
            for some in (self.likes, self.reposts)
        )
        return {"plays": len(plays), "listeners": people(plays), "likes": likes, "reposts": reposts}

    def realtime(self, track: int, now: int) -> JSON:
        """Return the current listeners and latest plays of a track, with names of listeners in place of hashes."""
        mine = sorted((play for play in self.plays if play.track == track), key=lambda play: -play.at)
        hour = [play for play in mine if now - play.at < 3600 * MICROSECONDS]
        return {
            "track_id": track,
            "active_listeners": people([play for play in hour if now - play.at < 300 * MICROSECONDS]),
            "plays_last_hour": len(hour),
            "recent_plays": [(play.at, play.listener) for play in mine[:20]],
        }

    def collaborations(self, artist: int) -> tuple[int, list[tuple[int, int, int]], list[int]]:
        """Return the number of shared tracks, (artist, tracks, plays) of each other artist, and the tracks."""
        mine = self.by_artist.get(artist, [])
        plays = Counter(play.track for play in self.plays)
        others = {
            other: [track for track in tracks if track in mine]
            for other, tracks in self.by_artist.items()
            if other != artist
        }
        shared = sorted({each for tracks in others.values() for each in tracks}, key=lambda each: (-plays[each], -each))
        partners = [
            (other, len(tracks), sum(plays[each] for each in tracks)) for other, tracks in others.items() if tracks
        ]
        partners.sort(key=lambda partner: (-partner[1], -partner[2], -partner[0]))
        return len(shared), partners, shared


def name_of(period: AnyPeriod) -> str:
    """Return the name that answers give a period."""
    if isinstance(period, Named):
        return period.name
    return period if isinstance(period, str) else "custom"


def bounds(period: AnyPeriod, now: int) -> tuple[int, int, int, int]:
    """Return the instants at which a window begins and ends, and those of the window that it is compared with."""
    today = day(now)
    if isinstance(period, str):
        first, last = today - timedelta(days=LENGTHS[period] - 1), today
        months = 0
    else:
        first, last = map(date.fromisoformat, period[1:3] if isinstance(period, Named) else period)
        months = period.months if isinstance(period, Named) else calendar_months(first, last, today)
    if months < 0:
        return at(first), at(last) + DAY, at(first), at(first)
    earlier = months_before(first, months) if months else first - (last - first) - timedelta(days=1)
    start, end = at(first), at(last) + DAY
    if last < today:
        return start, end, at(earlier), start
    elapsed = now // MICROSECONDS * MICROSECONDS - start
    return start, end, at(earlier), min(at(earlier) + elapsed, start)


def calendar_months(first: date, last: date, today: date) -> int:
    """Return 1, 3 or 12 if the days are a month, quarter or year, whole or from its first day to today; else 0."""
    for months in (1, 3, 12):
        begins = first.day == 1 and (first.month - 1) % months == 0
        if begins and (last == today < months_after(first, months) or last == months_after(first, months) - ONE_DAY):
            return months
    return 0


def months_after(first: date, months: int) -> date:
    """Return the same day some months later."""
    carry, month = divmod(first.month - 1 + months, 12)
    return first.replace(year=first.year + carry, month=month + 1)


def months_before(first: date, months: int) -> date:
    """Return the same day some months earlier."""
    return months_after(first, -months)


def at(first: date) -> int:
    """Return the first instant of a day."""
    return int(datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp()) * MICROSECONDS


@functools.cache
def day(instant: int) -> date:
    """Return the UTC day of an instant."""
    return datetime.fromtimestamp(instant // MICROSECONDS, UTC).date()


def people(plays: list[PlayOf]) -> int:
    """Return the number of distinct listeners."""
    return len({play.listener for play in plays})


def growth(now: int, before: int) -> float | None:
    """Return the growth in percent with one decimal."""
    return None if before == 0 else rounded(Fraction(100 * (now - before), before), 1)


def rounded(exact: Fraction, decimals: int) -> float:
    """Return the fraction with this number of decimals, halves away from zero."""
    steps = abs(exact) * 10**decimals
    below = steps.numerator // steps.denominator
    nearest = Fraction(below + (steps - below >= Fraction(1, 2)), 10**decimals)
    return float(nearest if exact > 0 else -nearest)
