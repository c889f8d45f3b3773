// Requests of openapi-fetch that survive faults of the network and of the server.
import type { components } from "./schema.js";

type Schemas = components["schemas"];
export type Problem = Schemas["Error"] | Schemas["InsightsError"] | Schemas["Unauthenticated"];
export type Answer<T> = { data?: T; error?: Problem; response: Response };
type Rules = { repeatable: boolean; wait: (seconds: number) => Promise<void>; signIn?: () => Promise<unknown> };

/** The server refused a request. */
export class Refused extends Error {
  constructor(readonly status: number, readonly problem: Problem | undefined) {
    super(problem?.message ?? `HTTP status ${status}`);
  }
}

/** A request may have been executed or not. */
export class Unknown extends Error {}

const nothing = { response: new Response(null, { status: 502 }) };

/** Send a request until it is accepted, and return its body. `repeatable`: executing it twice does no harm. */
export async function send<T>(call: () => Promise<Answer<T>>, { repeatable, wait, signIn }: Rules): Promise<T> {
  for (const pause of [1, 2, 4, 8, 16]) {
    const { data, error, response } = await call().catch((): Answer<T> => nothing); // the connection ended early
    const { status, headers } = response;
    if (data !== undefined) return data;
    if (status === 401 && signIn) {
      await signIn();
      continue;
    }
    if (status < 500 && status !== 429) throw new Refused(status, error);
    await wait(Number(headers.get("Retry-After") ?? pause));
    if (status !== 429 && !repeatable) break;
  }
  throw new Unknown();
}

/** Return what `look` finds; act until it finds something. An earlier try may be the cause, or a copy of it. */
export async function settle<T>(look: () => Promise<T>, act: () => Promise<unknown>): Promise<NonNullable<T>> {
  for (let tries = 0; tries < 10; tries++) {
    const found = await look();
    if (found) return found;
    try {
      await act();
    } catch (error) {
      if (error instanceof Unknown) continue;
      const found = await look();
      if (found) return found;
      throw error;
    }
  }
  throw new Unknown();
}
