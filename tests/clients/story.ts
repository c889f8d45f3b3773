// Ann and Ben build a playlist with openapi-fetch and the types of openapi-typescript, on their bad days too.
import createClient, { type Client } from "openapi-fetch";
import { type Answer, Refused, send, settle, Unknown } from "./resilient.js";
import type { components, paths } from "./schema.js";

declare const process: { stdin: { setEncoding(name: "utf8"): AsyncIterable<string> } };
type Track = components["schemas"]["Track"];
type Playlist = components["schemas"]["Playlist"];
type Page<R> = { data: R[]; last_page: number };

const password = "three romances for violin";
const name = "A story of two";
let [root, words, now, seconds] = ["", "", "", ""]; // of the story that is told
const fetchInTime = (request: Request) => fetch(request, { signal: AbortSignal.timeout(Number(seconds) * 1000) });

/** The app of one person, on a device of its own. `refused`: what it has shown to the person. */
class App {
  client: Client<paths>;
  token = "";
  userId = 0;
  refused: [number, string][] = [];
  waited = 0;

  constructor(readonly email: string) {
    this.client = createClient<paths>({ baseUrl: root, fetch: fetchInTime });
    this.client.use({
      onRequest: ({ request }) => {
        if (this.token) request.headers.set("Authorization", `Bearer ${this.token}`);
      },
    });
  }

  /** Let time pass, by the clock of the demo. */
  wait = async (wanted: number): Promise<void> => {
    this.waited += wanted;
    await this.client.POST("/demo/clock", { body: { advance: `${Math.ceil(wanted)}s` } });
  };

  /** Get a new token, and return whether the account exists. */
  signIn = async (): Promise<boolean> => {
    this.token = "";
    const body = { email: this.email, password, token_name: "A story" };
    try {
      const call = () => this.client.POST("/api/v1/auth/login", { body });
      const { user } = await send(call, { repeatable: true, wait: this.wait });
      [this.token, this.userId] = [user.access_token, user.id];
      return true;
    } catch (error) {
      if (error instanceof Refused && error.status === 422) return false;
      throw error;
    }
  };

  register = () => {
    const call = () => this.client.POST("/api/v1/auth/register", { body: { email: this.email, password } });
    return send(call, { repeatable: false, wait: this.wait });
  };

  join = () => settle(this.signIn, this.register);

  read<T>(call: () => Promise<Answer<T>>): Promise<T> {
    return send(call, { repeatable: true, wait: this.wait, signIn: this.signIn });
  }

  write<T>(call: () => Promise<Answer<T>>): Promise<T> {
    return send(call, { repeatable: false, wait: this.wait, signIn: this.signIn });
  }

  /** Return the rows of all pages of a list. */
  async readAll<R>(call: (page: number) => Promise<Answer<{ pagination: Page<R> }>>): Promise<R[]> {
    const rows: R[] = [];
    for (let number = 1, last = 1; number <= last; number++) {
      const { pagination } = await this.read(() => call(number));
      last = pagination.last_page;
      rows.push(...pagination.data);
    }
    return rows;
  }

  /** Do what the person asks for. Show what is refused; the person reads it, and asks again. */
  async press<T>(button: () => Promise<T>): Promise<T> {
    while (this.refused.length < 100) {
      try {
        return await button();
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        this.refused.push([error.status, error.message]);
      }
    }
    throw new Unknown();
  }
}

/** Return the tracks that the search finds, and after them all others. */
async function findTracks(app: App): Promise<Track[]> {
  const found = await app.read(() => app.client.GET("/api/v1/search", { params: { query: { q: words } } }));
  const listed = await app.readAll((page) =>
    app.client.GET("/api/v1/tracks", { params: { query: { page, perPage: 7 } } }),
  );
  return [...new Map([...found.tracks, ...listed].map((track) => [track.id, track])).values()];
}

function listPlaylists(app: App): Promise<Playlist[]> {
  return app.readAll((page) => app.client.GET("/api/v1/playlists", { params: { query: { page } } }));
}

/** Create the playlist if there is none of this name. Of several, which copies of a request made, keep one. */
async function createPlaylist(app: App): Promise<Playlist> {
  const look = async (): Promise<Playlist | undefined> => {
    const [found, ...copies] = (await listPlaylists(app)).filter((playlist) => playlist.name === name);
    for (const copy of copies) await deletePlaylist(app, copy.id);
    return found;
  };
  return settle(look, () => app.write(() => app.client.POST("/api/v1/playlists", { body: { name } })));
}

async function listTracks(app: App, id: number): Promise<number[]> {
  const tracks = await app.readAll((page) =>
    app.client.GET("/api/v1/playlists/{id}/tracks", { params: { path: { id }, query: { page, perPage: 3 } } }),
  );
  return tracks.map((track) => track.id);
}

/** Make the playlist consist of these tracks in this order. */
async function arrange(app: App, id: number, wanted: number[]): Promise<void> {
  const params = { path: { id } };
  let held: number[] = [];
  const look = async () => {
    held = await listTracks(app, id);
    return held.join() === wanted.join();
  };
  const count = (tracks: number[], track: number) => tracks.filter((other) => other === track).length;
  const change = () => {
    const surplus = [...new Set(held)].filter((track) => count(held, track) > count(wanted, track));
    const missing = wanted.filter((track) => !held.includes(track));
    if (surplus.length > 0) {
      return app.client.POST("/api/v1/playlists/{id}/tracks/remove", { params, body: { ids: surplus } });
    }
    if (missing.length > 0) {
      return app.client.POST("/api/v1/playlists/{id}/tracks/add", { params, body: { ids: missing } });
    }
    const at = wanted.findIndex((track, place) => held[place] !== track);
    const body = { from: held.indexOf(wanted[at]) + 1, to: at + 1 };
    return app.client.POST("/api/v1/playlists/{id}/tracks/move", { params, body });
  };
  await settle(look, () => app.write(change));
}

async function listCollaborators(app: App, id: number): Promise<string[]> {
  const users = await app.readAll((page) =>
    app.client.GET("/api/v1/playlists/{id}/collaborators", { params: { path: { id }, query: { page } } }),
  );
  return users.map((user) => user.display_name);
}

/** Invite the guest, who says whether the invitation is there, because only guests see it. */
async function invite(app: App, guest: App, id: number): Promise<void> {
  const look = async () => {
    const invitations = await guest.readAll((page) =>
      guest.client.GET("/api/v1/playlists/invitations", { params: { query: { page } } }),
    );
    return invitations.some((invitation) => invitation.playlist.id === id);
  };
  const params = { path: { id } };
  const body = { user_id: guest.userId };
  await settle(look, () => app.write(() => app.client.POST("/api/v1/playlists/{id}/invite", { params, body })));
}

async function accept(app: App, id: number): Promise<void> {
  const look = async () => (await listPlaylists(app)).some((playlist) => playlist.id === id);
  const params = { path: { id } };
  await settle(look, () => app.write(() => app.client.POST("/api/v1/playlists/{id}/accept-invite", { params })));
}

async function deletePlaylist(app: App, id: number): Promise<void> {
  const look = async () => (await listPlaylists(app)).every((playlist) => playlist.id !== id);
  const params = { path: { id } };
  await settle(look, () => app.write(() => app.client.DELETE("/api/v1/playlists/{id}", { params })));
}

/** Report a play of each track. Each has an id, so that the report can be sent again. */
async function reportPlays(app: App, tracks: number[]): Promise<number> {
  const plays = tracks.map((track_id, at) => ({
    track_id,
    played_at: new Date(Date.parse(now) - at * 300_000).toISOString(),
    duration_ms: 60_000,
    client_id: `story-${at}`,
  }));
  const reported = await app.read(() => app.client.POST("/api/v1/plays", { body: { plays } }));
  return reported.accepted + reported.repeated;
}

/** Export the figures of the tracks that the account manages, and return the plays of each. */
async function exportPlays(app: App): Promise<[number, number][]> {
  const path = "/api/v1/producer-intelligence/insights/export/json";
  const { rows } = (await app.read(() => app.client.POST(path, { body: {} }))).data;
  const tracks = rows.filter((row) => "track_id" in row && "plays_total" in row);
  return tracks.map((row) => [row.track_id, row.plays_total]);
}

/** Let Ann and Ben build a playlist; return what they see. */
async function tell(ann: App, ben: App): Promise<object> {
  for (const app of [ann, ben]) await app.press(app.join);
  const tracks = await ann.press(() => findTracks(ann));
  const ids = tracks.slice(0, 5).map((track) => track.id);
  const { id } = await ann.press(() => createPlaylist(ann));
  await ann.press(() => arrange(ann, id, ids.slice(0, 3)));
  await ann.press(() => invite(ann, ben, id));
  await ben.press(() => accept(ben, id));
  await ben.press(() => arrange(ben, id, ids));
  await ben.press(() => arrange(ben, id, [ids[4], ...ids.slice(0, 4)]));
  const told = {
    found: tracks.map((track) => track.name),
    playlist: [await ann.press(() => listTracks(ann, id)), await ben.press(() => listTracks(ben, id))],
    collaborators: await ann.press(() => listCollaborators(ann, id)),
    reported: await ann.press(() => reportPlays(ann, ids)),
    plays: await ann.press(() => exportPlays(ann)),
  };
  await ann.press(() => deletePlaylist(ann, id));
  const left = [...(await ann.press(() => listPlaylists(ann))), ...(await ben.press(() => listPlaylists(ben)))];
  return {
    ...told,
    left: left.map((playlist) => playlist.name),
    refused: [...ann.refused, ...ben.refused],
    waited: ann.waited + ben.waited,
  };
}

for await (const line of process.stdin.setEncoding("utf8")) {
  [root, words, now, seconds] = JSON.parse(line);
  console.log(JSON.stringify(await tell(new App("demo@musicsvc.test"), new App("ben@example.test"))));
}
