// Page through the albums and build a playlist with the types that openapi-typescript generated.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Album = components["schemas"]["Album"];
type AlbumsPage = components["schemas"]["OfAlbumsAlbum"];

declare const process: { argv: string[] };
const [root, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: root, headers: { Authorization: `Bearer ${token}` } });

function found<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const albums: Album[] = [];
for (let page = 1, last = 1; page <= last; page++) {
  const answer = found(await client.GET("/api/v1/albums", { params: { query: { page, per_page: 2 } } })) as AlbumsPage;
  last = answer.albums.last_page;
  albums.push(...answer.albums.data);
}

const made = found(await client.POST("/api/v1/playlists", { body: { name: "Generated" } }));
const path = { id: made.playlist.id };
const ids = albums.flatMap((album) => album.tracks.map((track) => track.id)).slice(0, 3);
const added = found(await client.POST("/api/v1/playlists/{id}/tracks/add", { params: { path }, body: { ids } }));
const held = found(await client.GET("/api/v1/playlists/{id}/tracks", { params: { path, query: { perPage: 2 } } }));
console.log(
  JSON.stringify({
    albums: albums.map((album) => album.id),
    playlist: added.playlist.name,
    tracks_count: added.playlist.tracks_count,
    first_page: held.pagination.data.map((track) => track.id),
    total: held.pagination.total,
  }),
);
