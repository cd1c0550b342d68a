// Keeps the models that servers of this machine hold in memory below a limit: before a model is
// loaded, those used longest ago are unloaded, on whichever server. A model that answers a call stays.

import { z } from 'zod';
import { NanobotError } from '../kernel/message/errors.ts';
import { createLanes } from '../lib/async.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import { askLocal, isOk, type LocalAddress, type LocalQuestion } from './local-servers.ts';
import type { LocalVendor } from './rules/model-names.ts';

const TIMEOUT_MS = 5000;
/** A server writes a model out of memory before it answers. */
const UNLOAD_TIMEOUT_MS = 60_000;
const LOOK_AGAIN_MS = 500;
const GIGABYTE = 1_000_000_000;

type HeldModel = {
  readonly model: string;
  readonly bytes: number;
  /** Undefined: the server cannot unload it. */
  readonly unload: LocalQuestion | undefined;
};

/** What a server holds, and the sizes of the models that it could load. */
export type ServerMemory = {
  readonly held: readonly HeldModel[];
  readonly sizes: ReadonlyMap<string, number>;
};

const NOTHING: ServerMemory = { held: [], sizes: new Map() };

type Reader = (
  ask: (question: LocalQuestion) => Promise<unknown>,
) => Promise<ServerMemory | undefined>;

const get = (path: `/${string}`, below: LocalQuestion['below'] = 'root') => ({
  ...{ path, below },
  timeoutMs: TIMEOUT_MS,
});
const post = (path: `/${string}`, body: Readonly<Record<string, unknown>>): LocalQuestion => ({
  ...{ path, body, below: 'root' },
  timeoutMs: UNLOAD_TIMEOUT_MS,
});

const size = z.number().min(0).catch(0);
const sized = z.object({ models: z.array(z.object({ name: z.string(), size })) });

const ollama: Reader = async (ask) => {
  const [ps, tags] = await Promise.all([ask(get('/api/ps')), ask(get('/api/tags'))]);
  const running = sized.safeParse(ps).data;
  if (running === undefined) return undefined;
  const stored = sized.safeParse(tags).data?.models ?? [];
  return {
    held: running.models.map(({ name, size: bytes }) => ({
      ...{ model: name, bytes },
      unload: post('/api/generate', { model: name, keep_alive: 0, stream: false }),
    })),
    sizes: new Map(stored.map((model) => [model.name, model.size])),
  };
};

const lmModels = z.object({
  models: z.array(
    z.object({
      key: z.string(),
      size_bytes: size,
      loaded_instances: z.array(z.object({ id: z.string() })).catch([]),
    }),
  ),
});

const lmStudio: Reader = async (ask) => {
  const { models } = lmModels.safeParse(await ask(get('/api/v1/models'))).data ?? {};
  if (models === undefined) return undefined;
  return {
    held: models.flatMap(({ key, size_bytes: bytes, loaded_instances: instances }) =>
      instances.map(({ id }) => ({
        ...{ model: key, bytes },
        unload: post('/api/v1/models/unload', { instance_id: id }),
      })),
    ),
    sizes: new Map(models.map(({ key, size_bytes: bytes }) => [key, bytes])),
  };
};

const llamaModels = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      meta: z.object({ size }).nullish().catch(undefined),
      status: z.object({ value: z.string() }).optional().catch(undefined),
    }),
  ),
});

/** llama.cpp: only its router, which reports a status, unloads models. */
const llamaCpp: Reader = async (ask) => {
  const answer = llamaModels.safeParse(await ask(get('/models', 'apiBase'))).data;
  if (answer === undefined || !answer.data.some(({ meta }) => meta)) return undefined;
  const loaded = answer.data.filter(({ status }) => (status?.value ?? 'loaded') === 'loaded');
  return {
    held: loaded.map(({ id, meta, status }) => ({
      ...{ model: id, bytes: meta?.size ?? 0 },
      unload: status === undefined ? undefined : post('/models/unload', { model: id }),
    })),
    sizes: new Map(answer.data.map(({ id, meta }) => [id, meta?.size ?? 0])),
  };
};

/** vLLM holds its one model as long as it runs, and does not say how large it is. */
const READERS: Readonly<Record<LocalVendor, readonly Reader[]>> = {
  ollama: [ollama],
  lmstudio: [lmStudio],
  vllm: [],
  local: [llamaCpp, lmStudio],
};

export async function readMemory(
  server: LocalAddress & { readonly vendor: LocalVendor },
  signal: AbortSignal,
): Promise<ServerMemory> {
  const ask = async (question: LocalQuestion) => {
    const answer = await askLocal(server, question, signal);
    return answer !== undefined && isOk(answer) ? answer.body : undefined;
  };
  for (const read of READERS[server.vendor]) {
    const found = await read(ask);
    if (found !== undefined) return found;
  }
  return NOTHING;
}

/** A server on this machine. */
type MemorySite = {
  /** It is on another machine, whose memory is not ours. */
  readonly isElsewhere: boolean;
  memory(signal: AbortSignal): Promise<ServerMemory>;
  isAnswering(model: string): boolean;
  /** Monotonic milliseconds; a model that was never called here comes first. */
  usedAt(model: string): number;
  unload(held: HeldModel, signal: AbortSignal): Promise<boolean>;
};

/** The limit does not permit the model; `message` is for the person. */
class MemoryRefused extends NanobotError {
  override readonly name = 'MemoryRefused';
  constructor(message: string) {
    super('memory_refused', message, { userText: message });
  }
}

export type MakeRoom = (site: MemorySite, model: string, signal: AbortSignal) => Promise<void>;

type MemoryDeps = {
  /** 0: none. */
  limitGb(): number;
  sites(): readonly MemorySite[];
  readonly clock: Clock;
};

/** @throws MemoryRefused where the model does not fit; the signal's reason */
export function createMemoryLimit({ limitGb, sites, clock }: MemoryDeps): MakeRoom {
  const lanes = createLanes();

  /** True once there is room; false while models that answer calls take it. */
  async function hasRoom(site: MemorySite, model: string, signal: AbortSignal): Promise<boolean> {
    const limit = limitGb() * GIGABYTE;
    const here = sites().filter(({ isElsewhere }) => !isElsewhere);
    const servers = await Promise.all(
      here.map(async (one) => ({ site: one, ...(await one.memory(signal)) })),
    );
    const own = servers.find((server) => server.site === site) ?? NOTHING;
    const isOwn = (name: string) => name === model || name === `${model}:latest`;
    if (own.held.some((held) => isOwn(held.model))) return true;
    const [, needed = 0] = [...own.sizes].find(([name]) => isOwn(name)) ?? [];
    const held = servers.flatMap((server) =>
      server.held.map((one) => ({ ...one, site: server.site })),
    );
    let used = held.reduce((sum, { bytes }) => sum + bytes, needed);
    const removable = held.filter(({ unload }) => unload !== undefined);
    const idle = removable
      .filter((one) => !one.site.isAnswering(one.model))
      .sort((one, other) => one.site.usedAt(one.model) - other.site.usedAt(other.model));
    for (const one of idle) {
      if (used <= limit) break;
      if (await one.site.unload(one, signal)) used -= one.bytes;
    }
    if (used <= limit) return true;
    const isWorthWaiting = needed <= limit && removable.length > idle.length;
    if (isWorthWaiting) return false;
    throw new MemoryRefused(tooLarge(model, needed, used - needed, limitGb()));
  }

  return async (site, model, signal) => {
    if (limitGb() === 0 || site.isElsewhere) return;
    await lanes.run('memory', async () => {
      while (!(await hasRoom(site, model, signal))) await clock.sleep(LOOK_AGAIN_MS, signal);
    });
  };
}

function tooLarge(model: string, needed: number, others: number, limit: number): string {
  const gigabytes = (bytes: number) => (bytes / GIGABYTE).toFixed(1);
  const own = gigabytes(needed);
  const rest = gigabytes(others);
  return t`${model} needs ${own} GB of memory beside ${rest} GB that cannot be freed; localModels.memoryGb allows ${limit}. Use a smaller model or raise the limit.`;
}
