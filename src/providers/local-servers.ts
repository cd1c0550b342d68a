// Finds model servers on this machine: Ollama, LM Studio and llama.cpp at their usual ports, nothing
// beyond loopback. An answer counts only in the exact shape of a model list.

import { z } from 'zod';
import { askLocal, isOk, type LocalAddress } from './local-http.ts';
import { isHandedOn, readHandedOn } from './model-facts.ts';
import type { LocalVendor } from './rules/model-names.ts';
import { vendorOf } from './vendors.ts';

export type LocalServer = {
  readonly vendor: LocalVendor;
  readonly apiBase: string;
  /** Models that can chat and run there, in the server's order. */
  readonly models: readonly string[];
  /** The same that it hands on to a service; one of both is not empty. */
  readonly handedOn: readonly string[];
};

export type DiscoverOptions = {
  readonly signal: AbortSignal;
  /** Where to look; the vendors' usual addresses when left out. */
  readonly at?: readonly Place[];
  /** For each; left out: what a server on this machine needs at most. */
  readonly timeoutMs?: number;
};

type Place = {
  readonly vendor: LocalVendor;
  readonly apiBase: string;
  readonly apiKey?: string;
};

/** A server on this machine answers at once or is none. */
const PROBE_MS = 300;
const NONE: ReadonlySet<string> = new Set();
const PROBED: readonly LocalVendor[] = ['ollama', 'lmstudio', 'local'];

const modelList = z.object({
  object: z.literal('list'),
  data: z.array(z.object({ id: z.string().min(1).max(200) })).max(10_000),
});
/** Models that embed, rank or transcribe cannot answer. */
const NOT_A_CHAT_MODEL = /embed|rerank|whisper|\bbge-|tts|stable-diffusion/i;

export const canChat = (model: string) => !NOT_A_CHAT_MODEL.test(model);

/** All probes run at once; a server that is absent, slow or answers oddly is left out. */
export async function discoverLocalModels(
  options: DiscoverOptions,
): Promise<readonly LocalServer[]> {
  const { timeoutMs = PROBE_MS } = options;
  const places: readonly Place[] =
    options.at ?? PROBED.map((vendor) => ({ vendor, apiBase: vendorOf(vendor).apiBase }));
  const found = await Promise.all(
    places.map(async ({ vendor, apiBase, apiKey = '' }) => {
      const server = { apiBase, apiKey };
      const [all, remote] = await Promise.all([
        listModels(server, timeoutMs, options.signal),
        vendor === 'ollama' ? readHandedOn(server, timeoutMs, options.signal) : NONE,
      ]);
      const isElsewhere = (model: string) => remote.has(model) || isHandedOn(model);
      const models = all.filter((model) => !isElsewhere(model));
      return { vendor, apiBase, models, handedOn: all.filter(isElsewhere) };
    }),
  );
  return found.filter(({ models, handedOn }) => models.length + handedOn.length > 0);
}

/** The models a server lists that can chat; none where it does not answer as one. */
export async function listModels(
  server: LocalAddress,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const said = await askLocal(server, { path: '/models', below: 'apiBase', timeoutMs }, signal);
  const answer = modelList.safeParse(said !== undefined && isOk(said) ? said.body : undefined);
  if (!answer.success) return [];
  return answer.data.data.map((model) => model.id).filter(canChat);
}
