"""The test data of accounts: follows, playlists, collections, conversations."""

from peewee import fn

from musicsvc.clock import DAY, MINUTE, SECOND, isoformat
from musicsvc.store.accounts import follows, tokens, users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.listens.matching import Listen
from musicsvc.store.listens.receiving import receive
from musicsvc.store.messaging import messages
from musicsvc.store.models import PendingListen, Token
from musicsvc.store.playlists import collections, invites, playlists
from musicsvc.store.playlists.playlists import PlaylistRow
from tests.paging.world import Row, World


def fill(world: World) -> None:
    """Add the data of accounts."""
    _add_follows(world)
    _add_playlists(world)
    _add_invitations(world)
    _add_collections(world)
    _add_conversations(world)
    _add_access_tokens(world)
    _add_pending_listens(world)


def _add_pending_listens(world: World) -> None:
    """59 entries of ann, with one to five listens each, and one of ben."""
    ann, ben = world.callers["ann"], world.callers["ben"]
    at = world.tick() - world.now % SECOND
    for number in range(59):
        count, title = 1 + (number * 7 + 3) % 5, f"Lost {number * 11 % 59}"
        moments = [at - (number * 40 + place) * MINUTE for place in range(count)]
        heard = [Listen(moment, "Nobody", title, release="None" if number % 2 else None) for moment in moments]
        receive(heard, [None] * count, now=world.tick(), actor=ann, accepted=True, daily=600)
        first = PendingListen.select(fn.min(PendingListen.id)).where(PendingListen.title == title).scalar()
        row = {"id": first, "artist": "Nobody", "track": title, "release": heard[0].release, "listens": count}
        world.pending.append(row | {"first_at": isoformat(min(moments)), "last_at": isoformat(max(moments))})
    receive([Listen(at, "Nobody", "Else")], [None], now=world.now, actor=ben, accepted=True, daily=600)


def _add_follows(world: World) -> None:
    """ann follows 21 and has 22 followers, ben follows 4 and has 9; a renewed follow is the newest."""
    ann, ben = world.callers["ann"].user_id, world.callers["ben"].user_id
    ids = [fan.user_id for fan in world.fans]
    pairs = [(ann, ids[number * 5 % 26]) for number in range(21)]
    pairs += [(ids[number * 9 % 26], ann) for number in range(22)]
    pairs += [(ben, each) for each in (ids[8], ids[2], ids[25], ids[1])]
    pairs += [(ids[number * 3 % 26], ben) for number in range(9)]
    by_id = {caller.user_id: caller for caller in (*world.callers.values(), *world.fans)}
    for again in (pairs[3], pairs[24]):
        follows.follow(again[1], now=world.tick(), actor=by_id[again[0]])
        follows.unfollow(again[1], actor=by_id[again[0]])
    for follower, followed in pairs:
        follows.follow(followed, now=world.tick(), actor=by_id[follower])
        world.follows.append((follower, followed))


def _add_playlists(world: World) -> None:
    """20 of ann and 9 of cleo, mixed; each stores the accounts that may edit it."""
    ann, ben, cleo = world.callers["ann"], world.callers["ben"], world.callers["cleo"]
    for number in range(29):
        owner = cleo if number % 3 == 1 else ann
        row = _add_playlist(world, number, owner)
        if number % 3 == 0:
            _share(world, row, ben, ("accept", "decline", "leave", "accept")[number // 3 % 4])
        if owner is cleo:
            _share(world, row, ann, ("accept", "wait", "accept", "decline", "switch off")[number // 3 % 5])


def _add_invitations(world: World) -> None:
    """32 fans' playlists to which ann is invited; two invitations are renewed. 24 accounts work on the first."""
    ann = world.callers["ann"]
    for number in range(32):
        row = _add_playlist(world, number, world.fans[number % 26])
        if number in {3, 17}:
            _share(world, row, ann, "decline")
            world.tick()
        _share(world, row, ann, "wait")
    for guest in world.fans[24:1:-1]:
        world.tick()
        _share(world, world.playlists[0], guest, "accept")


def _add_playlist(world: World, number: int, owner: Identity) -> Row:
    values = {
        "name": f"Playlist {number * 12 % 29}",
        "public": number % 5 == 0,
        "collaborative": number % 4 == 3,
        "image": f"https://img.test/playlists/{number}.png" if number % 2 else None,
        "description": f"Description of playlist {number}" if number % 3 else None,
    }
    created_at = world.tick()
    row = playlists.create(values, now=created_at, actor=owner)
    chosen = [world.tracks[each * 7 % 51] for each in range(45)] if number == 0 else world.tracks[:number]
    chosen = chosen[:30] + chosen[10:25] if number == 0 else chosen  # some of them twice
    playlists.append(row.id, [track["id"] for track in chosen], actor=owner.user_id, now=world.tick())
    facts = {"id": row.id, "created_at": created_at, "tracks": chosen, "owner": owner.user_id}
    world.playlists.append(values | facts | {"editors": {owner.user_id}, "collaborators": []})
    return world.playlists[-1]


def _share(world: World, row: Row, guest: Identity, how: str) -> None:
    """Invite an account to a playlist, and accept or decline."""
    invites.create(playlists.get(row["id"]), guest.user_id, now=world.now)
    row["collaborative"] = True
    if how in {"wait", "leave"}:
        world.invitations.append({"playlist": row, "to": guest.user_id, "created_at": world.now})
    if how == "decline":
        invites.decline(invites.get_own(row["id"], actor=guest), now=world.now)
    if how in {"accept", "switch off"}:
        invites.accept(invites.get_own(row["id"], actor=guest), now=world.now)
    if how == "accept":
        row["editors"].add(guest.user_id)
        row["collaborators"].append(guest.user_id)
    if how == "switch off":
        row["collaborative"] = False
        playlists.replace(row["id"], _columns(playlists.get(row["id"])) | {"collaborative": False})


def _columns(row: PlaylistRow) -> Row:
    return {name: getattr(row, name) for name in ("name", "public", "image", "description")}


def _add_collections(world: World) -> None:
    """25 of ann, each with another number of tracks, and 2 of cleo."""
    for number in range(27):
        owner = world.callers["cleo" if number in {9, 20} else "ann"]
        chosen = [world.tracks[each * 11 % 51] for each in range(number * 3 % 29)]
        name, description = f"Collection {number * 5 % 27}", f"Of {number}" if number % 2 else None
        ids = [track["id"] for track in chosen]
        row = collections.create(name, description, ids, now=world.tick(), actor=owner)
        facts = {"id": row.id, "created_at": world.now, "tracks": chosen, "owner": owner.user_id}
        world.collections.append({"name": name, "description": description} | facts)


def _add_conversations(world: World) -> None:
    """27 of ann, 6 of them with ben; one of cleo and ben. The first has 104 messages, some have none."""
    ann, ben, cleo = (world.callers[name] for name in ("ann", "ben", "cleo"))
    for number in range(28):
        first, *others = [cleo, ben] if number == 13 else [ann, *world.fans[number % 5 : number % 5 + 3 - number % 2]]
        others += [ben] if number % 5 == 0 else []
        made = messages.create([each.user_id for each in others], now=world.tick(), actor=first)
        people = sorted({first.user_id, *(each.user_id for each in others)})
        facts = {"id": made.id, "created_at": world.now, "last_at": world.now, "users": people, "messages": []}
        world.conversations.append(facts | {"speakers": [first, *others]})
    for number in range(104):
        _say(world.conversations[0], number, world.tick())
    # Newest messages in an order that is not that of the ids; pairs of them at the same instant.
    for number in range(20):
        row = world.conversations[1 + number * 9 % 27]
        _say(row, number, world.tick() if number % 2 else world.now)


def _say(row: Row, number: int, now: int) -> None:
    by, text = row["speakers"][number % len(row["speakers"])], f"Message {number * 29 % 104}"
    message = messages.send(row["id"], text, now=now, actor=by)
    row["messages"].append({"id": message.id, "message_text": text, "by": by.user_id, "created_at": now})
    row["last_at"] = now


def _add_access_tokens(world: World) -> None:
    """37 more of ann and 4 of ben: expired, revoked and valid ones of either scope, some of them used."""
    for name, caller in world.callers.items():
        (first,) = tokens.list(users.get(caller.user_id))
        # Later than the server, so that it stores no other time while the lists are read.
        tokens.touch({first.id: world.now + 2 * DAY})
        world.access_tokens.append(_columns_of_token(tokens.get(first.id), "valid"))
        for number in range({"ann": 37, "ben": 4, "cleo": 0}[name]):
            state = ("valid", "expired", "revoked")[number % 3]
            made = world.tick() - (9 * DAY if state == "expired" else 0)
            scope: tokens.Scope = "read" if number % 2 else "read-write"
            owner = users.get(caller.user_id)
            token, _ = tokens.create(owner, f"Token {number * 7 % 37}", days=5 + number % 4, scope=scope, now=made)
            if state == "revoked":
                tokens.revoke(token.id, "lost", now=world.tick())
            if number % 4 == 3:
                tokens.touch({token.id: world.tick()})
            world.access_tokens.append(_columns_of_token(tokens.get(token.id), state))


def _columns_of_token(token: Token, state: str) -> Row:
    names = ("id", "name", "last_four", "scope", "created_at", "expires_at", "last_used_at")
    return {name: getattr(token, name) for name in names} | {"state": state, "owner": token.user.id}
