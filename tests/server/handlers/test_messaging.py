"""Conversations, collections, devices and notification settings."""

from functools import partial

import pytest

from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine import bulk
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.store import Store
from musicsvc.store.messaging import messages, notifications
from musicsvc.store.models import Device, Message
from tests.conftest import NOW
from tests.support.bounds import Bounds
from tests.support.people import People
from tests.support.query_count import instructions
from tests.support.serving import Client
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = on_shared_loop


@pytest.fixture
def client(people: People) -> Client:
    return people.ann.ask


@pytest.fixture
def ben(people: People) -> tuple[int, Client]:
    return people.ben.id, people.ben.ask


async def make_tracks(client: Client, count: int) -> list[int]:
    artist = (await client.post("artists", {"name": "Amy Beach"})).json["artist"]["id"]
    made = [
        await client.post("tracks", {"name": f"Piece {at}", "duration": 1000, "artists": [artist]})
        for at in range(count)
    ]
    return [answer.json["track"]["id"] for answer in made]


async def test_a_conversation_is_seen_by_those_who_take_part_and_by_nobody_else(
    client: Client, ben: tuple[int, Client], people: People
) -> None:
    ben_id, as_ben = ben
    stranger = people.cleo.ask
    begun = await client.post("messaging/conversations", {"user_ids": [ben_id]})
    assert begun.status == 201
    conversation = begun.json["conversation"]
    assert [user["display_name"] for user in conversation["users"]] == ["ann", "ben"]
    assert conversation["last_message"] is None
    sent = []
    for text in ("Hello", "Are you there?"):
        body = {"conversation_id": conversation["id"], "message_text": text}
        answer = await client.post("messaging/messages", body)
        assert (answer.status, answer.json["message"] | body) == (201, answer.json["message"])
        sent.append(answer.json["message"])
        assert (await stranger.post("messaging/messages", body)).status == 404
    read = (await as_ben.get(f"messaging/conversations/{conversation['id']}/messages")).json["pagination"]
    assert read["data"] == sent[::-1]
    listed = (await as_ben.get("messaging/conversations")).json["pagination"]["data"]
    assert listed[0]["last_message"] == sent[-1]
    assert (await stranger.get(f"messaging/conversations/{conversation['id']}/messages")).status == 404
    assert (await stranger.get("messaging/conversations")).json["pagination"]["total"] == 0


async def test_the_conversation_with_the_newest_message_stands_first(
    client: Client, ben: tuple[int, Client], shared: Shared
) -> None:
    ids = []
    for _ in range(2):
        shared.clock.advance(1_000_000)
        ids.append((await client.post("messaging/conversations", {"user_ids": [ben[0]]})).json["conversation"]["id"])
    shared.clock.advance(1_000_000)
    await client.post("messaging/messages", {"conversation_id": ids[0], "message_text": "Up"})
    listed = (await client.get("messaging/conversations")).json["pagination"]["data"]
    assert [row["id"] for row in listed] == ids


@pytest.mark.only_on("sqlite")
async def test_a_list_of_conversations_reads_the_newest_message_of_each_alone(store: Store) -> None:
    actor = tokens.identity_of(store.write(lambda: users.create("ann@label.test", now=NOW)).result())
    talk = store.write(lambda: messages.create([], now=NOW, actor=actor).id).result()

    def read() -> None:
        (row,) = messages.list_own(Page(), actor=actor).rows
        assert row.last_message is not None

    def send(number: int) -> None:
        bulk.insert(Message, ("conversation", "user", "message_text", "created_at"), [(talk, 1, "Hello", NOW)] * number)

    store.write(lambda: send(10)).result()
    few = store.read(partial(instructions, read)).result()
    store.write(lambda: send(500)).result()
    assert store.read(partial(instructions, read)).result() < 2 * few


async def test_a_conversation_names_others_only(client: Client, ben: tuple[int, Client]) -> None:
    answer = await client.post("messaging/conversations", {"user_ids": [ben[0] - 1]})
    assert (answer.status, list(answer.json["errors"])) == (422, ["user_ids"])


async def test_a_collection_keeps_its_tracks_in_the_order_sent(client: Client, ben: tuple[int, Client]) -> None:
    first, second = await make_tracks(client, 2)
    made = await client.post("collections", {"name": "Evening", "track_ids": [second, first, second]})
    assert made.status == 201
    collection = made.json["collection"]
    assert [track["id"] for track in collection["tracks"]] == [second, first, second]
    assert (collection["tracks_count"], collection["description"]) == (3, None)
    assert (await client.get(f"collections/{collection['id']}")).json["collection"] == collection
    empty = (await client.post("collections", {"name": "Later"})).json["collection"]
    assert (empty["tracks_count"], empty["tracks"]) == (0, [])
    listed = (await client.get("collections")).json["pagination"]["data"]
    # A list of collections is bounded, so it leaves their tracks out.
    assert listed == [{key: each[key] for key in each if key != "tracks"} for each in (empty, collection)]
    assert (await ben[1].get(f"collections/{collection['id']}")).status == 404
    assert (await ben[1].get("collections")).json["pagination"]["total"] == 0


async def test_a_device_token_has_one_row_and_moves_to_who_registers_it(
    client: Client, ben: tuple[int, Client], shared: Shared
) -> None:
    body = {"token": " push-1 ", "device_name": "Kitchen"}
    assert (await client.post("fcm-tokens", body)).json == {"status": "ok"}
    assert (await client.post("fcm-tokens", body | {"platform": "ios"})).json == {"status": "ok"}
    again = body | {"platform": None, "device_name": None}
    assert (await ben[1].post("fcm-tokens", again)).json == {"status": "ok"}
    rows = shared.store.read(lambda: list(Device.select(Device.token, Device.user, Device.platform).tuples())).result()
    assert rows == [(" push-1 ", ben[0], "web")]
    assert (await client.delete("fcm-tokens", body={"token": " push-1 "})).json == {"status": "success"}
    assert shared.store.read(Device.select().count).result() == 1
    assert (await ben[1].delete("fcm-tokens", body={"token": " push-1 "})).status == 200
    assert (await ben[1].delete("fcm-tokens", body={"token": " push-1 "})).status == 200
    assert shared.store.read(Device.select().count).result() == 0


async def test_notification_choices_merge_by_channel(client: Client) -> None:
    path = "notifications/me/subscriptions"
    first = [{"notif_id": "new_follower", "channels": {"email": False}}, {"notif_id": "comment", "channels": {}}]
    assert (await client.put(path, {"selections": first})).json == {"status": "success"}
    second = [{"notif_id": "new_follower", "channels": {"mobile": False}}]
    assert (await client.put(path, {"selections": second})).status == 200
    assert (await client.get(path)).json["subscriptions"] == [
        {"notif_id": "comment", "channels": {"email": True, "in_app": True, "mobile": True}},
        {"notif_id": "new_follower", "channels": {"email": False, "in_app": True, "mobile": False}},
    ]


async def test_an_account_has_settings_for_a_bounded_number_of_kinds_of_notifications(
    client: Client, bounds: Bounds
) -> None:
    path = "notifications/me/subscriptions"
    kinds = [{"notif_id": f"kind_{number}", "channels": {}} for number in range(notifications.MOST)]
    for first in range(0, notifications.MOST, 100):
        assert (await client.put(path, {"selections": kinds[first : first + 100]})).status == 200
    refused = await client.put(path, {"selections": [{"notif_id": "one_more", "channels": {}}]})
    assert (refused.status, refused.json["errors"]) == (422, {"selections": notifications.TOO_MANY})
    known = [{"notif_id": "kind_7", "channels": {"email": False}}]
    assert (await client.put(path, {"selections": known})).status == 200
    assert len((await client.get(path)).json["subscriptions"]) == notifications.MOST
    bounds(most_notifications=7)  # as if an earlier version had stored more
    assert (await client.put(path, {"selections": known})).status == 200
    assert (await client.put(path, {"selections": [{"notif_id": "one_more", "channels": {}}]})).status == 422


async def test_notifications_of_others_are_theirs(client: Client, ben: tuple[int, Client]) -> None:
    for path, status in [
        (str(ben[0]), 403),
        ("99999", 403),
        (str(2**53), 404),
        ("9" * 5000, 404),
        ("abc", 404),
        ("01", 404),
        (str(ben[0] - 1), 200),
    ]:
        answer = await client.put(f"notifications/{path}/subscriptions", {"selections": []})
        assert answer.status == status, path
        assert (await client.get(f"notifications/{path}/subscriptions")).status == status
