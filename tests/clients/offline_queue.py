"""Send a queue of listens with liblistenbrainz: `offline_queue.py ADDRESS TOKEN`, and JSON on stdin.

Each line of stdin is a part of the queue, `[artist, title, listened_at]` of each listen; it is answered by a line.
"""

import json
import sys

from liblistenbrainz import Listen, ListenBrainz

if __name__ == "__main__":
    address, token = sys.argv[1:]
    client = ListenBrainz(api_base_url=address)
    client.set_auth_token(token)
    for line in sys.stdin:
        listens = [
            Listen(title, artist, listened_at=at, additional_info={"media_player": "Offline Queue"})
            for artist, title, at in json.loads(line)
        ]
        answer = client.submit_multiple_listens(listens)
        print(json.dumps([answer, len(listens)]), flush=True)
