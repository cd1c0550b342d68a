// Has a local server load a model before somebody waits for its answer: Ollama by its own call for that,
// the others by a completion of one token. While it says that it is loading, it is asked again.

import type { Clock } from '../lib/time/clock.ts';
import type { Place } from './local-gate.ts';
import { askLocal, isOk, type LocalAddress, type LocalAnswer } from './local-http.ts';
import type { CallMeter, MeteredTry } from './provider.ts';
import type { LocalVendor } from './rules/model-names.ts';
import { localModelName } from './rules/peer-name.ts';
import { LOADING } from './rules/provider-failure.ts';
import { basedAt } from './shown-address.ts';

export type WarmUp = {
  /** Undefined: nobody is there to account for it, and it costs nothing. */
  readonly meter: CallMeter | undefined;
};

export type Loading = {
  readonly server: LocalAddress & { readonly vendor: LocalVendor; readonly peer?: string };
  readonly model: string;
  readonly clock: Clock;
  enter(): Promise<Place>;
};

const LOAD_TIMEOUT_MS = 120_000;
/** Between the tries. */
const WAITS_MS = [2000, 4000, 8000];

/** Whether it is loaded now. @throws what the meter throws, the signal's reason */
export async function loadModel(
  loading: Loading,
  { meter }: WarmUp,
  signal: AbortSignal,
): Promise<boolean> {
  for (let tries = 0; ; tries += 1) {
    const answer = await tryOnce(loading, meter, signal);
    if (answer !== undefined && isOk(answer)) return true;
    const waitMs = WAITS_MS[tries];
    const isLoading = answer !== undefined && LOADING.test(JSON.stringify(answer.body ?? ''));
    if (!isLoading || waitMs === undefined) return false;
    await loading.clock.sleep(waitMs, signal);
  }
}

async function tryOnce(
  { server, model, enter }: Loading,
  meter: CallMeter | undefined,
  signal: AbortSignal,
): Promise<LocalAnswer | undefined> {
  const place = await enter();
  let attempt: MeteredTry | undefined;
  try {
    const name = localModelName(server, model);
    attempt = await meter?.begin(name, signal, {
      ...basedAt(server.apiBase),
      waitedMs: place.waitedMs,
    });
    const answer = await askLocal(server, { ...askFor(server.vendor, model) }, signal);
    attempt?.end(endOf(answer));
    return answer;
  } catch (error) {
    attempt?.end(endOf(undefined));
    throw error;
  } finally {
    place[Symbol.dispose]();
  }
}

function askFor(vendor: LocalVendor, model: string) {
  const timeoutMs = LOAD_TIMEOUT_MS;
  if (vendor === 'ollama') {
    return {
      path: '/api/generate',
      below: 'root',
      body: { model, stream: false },
      timeoutMs,
    } as const;
  }
  const messages = [{ role: 'user', content: 'Hi' }];
  const body = { model, messages, max_tokens: 1, stream: false };
  return { path: '/chat/completions', below: 'apiBase', body, timeoutMs } as const;
}

function endOf(answer: LocalAnswer | undefined): Parameters<MeteredTry['end']>[0] {
  if (answer === undefined) return { kind: 'failed', failure: { kind: 'network' }, answerChars: 0 };
  if (isOk(answer)) return { kind: 'finished', answerChars: 0 };
  const failure = { kind: 'server', status: answer.status } as const;
  return { kind: 'failed', failure, answerChars: 0 };
}
