// Print exports and the errors of refused ones, with the types that openapi-typescript generated.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };
const [root, token] = process.argv.slice(2);
const FORMATS = ["csv", "xlsx", "pdf"] as const;

// The files in Base64 or the errors, by format.
async function exported(given: string, body: components["schemas"]["ScopeIn"] = {}) {
  const client = createClient<paths>({ baseUrl: root, headers: { Authorization: `Bearer ${given}` } });
  const found: Record<string, string | components["schemas"]["InsightsError"]> = {};
  for (const name of FORMATS) {
    const path = `/api/v1/producer-intelligence/insights/export/${name}` as const;
    const { data, error } = await client.POST(path, { body, parseAs: "arrayBuffer" });
    found[name] = error ?? btoa(String.fromCharCode(...new Uint8Array(data)));
  }
  return found;
}

console.log(
  JSON.stringify([
    await exported(token),
    await exported(token, { album_id: 2 ** 53 - 1 }),
    await exported(token, { album_id: 1, artist_id: 1 }),
    await exported("none"),
  ]),
);
