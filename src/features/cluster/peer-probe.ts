// What a server says of itself when it is asked for its models, and nothing else is sent: no key, no
// word of a conversation. Also the search for servers at configured places.

import { z } from 'zod';
import { mapLimited } from '../../lib/async.ts';
import { askLocal, isOk, type LocalAddress } from '../../providers/local-http.ts';
import { canChat } from '../../providers/local-servers.ts';
import type { LocalVendor } from '../../providers/rules/model-names.ts';

export type ServerSaid = {
  readonly kind: LocalVendor;
  /** That can chat, in the server's order. */
  readonly models: readonly string[];
  /** Of all it says that stays the same from one question to the next. */
  readonly mark: string;
};

export type FoundHost = ServerSaid & {
  /** `host:port`. */
  readonly address: string;
};

const AT_ONCE = 20;
const TIMEOUT_MS = 3000;

const modelList = z.object({
  object: z.literal('list'),
  data: z
    .array(
      z.object({
        id: z.string().min(1).max(200),
        owned_by: z.string().max(200).optional().catch(undefined),
      }),
    )
    .max(10_000),
});

/** By whom a model is said to be owned. */
const KINDS: Readonly<Record<string, LocalVendor>> = {
  library: 'ollama',
  organization_owner: 'lmstudio',
  vllm: 'vllm',
};

/** Undefined where it does not answer as a model server does. */
export async function askWhatItHas(
  server: LocalAddress,
  signal: AbortSignal,
): Promise<ServerSaid | undefined> {
  const question = { path: '/models', below: 'apiBase', timeoutMs: TIMEOUT_MS } as const;
  const said = await askLocal(server, question, signal);
  const answer = modelList.safeParse(said !== undefined && isOk(said) ? said.body : undefined);
  // Servers that are just starting have nothing yet: that is no other server.
  if (!answer.success || answer.data.data.length === 0) return undefined;
  const { data } = answer.data;
  const kind = data.map(({ owned_by: owner = '' }) => KINDS[owner]).find((each) => each);
  const each = data.map(({ id, owned_by: owner = '' }) => `${id}\n${owner}`).sort();
  return {
    kind: kind ?? 'local',
    models: data.map(({ id }) => id).filter(canChat),
    mark: JSON.stringify(each),
  };
}

/** Those that have models; whoever is absent, slow, redirects or answers oddly is left out. */
export async function findHosts(
  places: readonly string[],
  signal: AbortSignal,
): Promise<readonly FoundHost[]> {
  const found = await mapLimited(places, AT_ONCE, async (address) => {
    if (signal.aborted) return [];
    const said = await askWhatItHas({ apiBase: `http://${address}/v1`, apiKey: '' }, signal);
    return said === undefined || said.models.length === 0 ? [] : [{ address, ...said }];
  });
  return found.flat();
}
