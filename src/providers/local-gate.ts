// Admission to a local server (a bounded number of concurrent calls) and loading its model before the
// first call.

import { createPermits } from '../lib/async.ts';
import type { Clock } from '../lib/time/clock.ts';
import {
  askLocal,
  isOk,
  type LocalAddress,
  type LocalAnswer,
  type LocalQuestion,
} from './local-http.ts';
import type { CallMeter, MeteredTry } from './provider.ts';
import { basedAt } from './provider-call.ts';
import { type LocalVendor, localModelName } from './rules/model-names.ts';
import { LOADING } from './rules/provider-failure.ts';

/** A place at the server; disposing gives it back, a second time changes nothing. */
export type Place = Disposable & {
  /** Milliseconds until it was given. */
  readonly waitedMs: number;
};

export class LocalGate {
  readonly #clock: Clock;
  readonly #permits = createPermits(1);
  #places = 1;
  #running = 0;
  #waiting = 0;
  #calls = 0;
  #waitedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `calls` and `waitedMs` since the start: calls that were let in, and their waits together. */
  get load() {
    const [running, waiting, calls] = [this.#running, this.#waiting, this.#calls];
    return { running, waiting, calls, waitedMs: this.#waitedMs };
  }

  /** Calls that would be let in first. */
  ahead(places: number): number {
    return this.#running < places ? 0 : this.#waiting + this.#running - places + 1;
  }

  /** Given back by itself when the signal aborts. @throws the signal's reason */
  async enter(places: number, signal: AbortSignal): Promise<Place> {
    if (places !== this.#places) this.#permits.resize(places);
    this.#places = places;
    const startedAt = this.#clock.monotonic();
    this.#waiting += 1;
    const permit = await this.#permits.acquire(signal).finally(() => {
      this.#waiting -= 1;
    });
    const waitedMs = Math.round(this.#clock.monotonic() - startedAt);
    this.#running += 1;
    this.#calls += 1;
    this.#waitedMs += waitedMs;
    return this.#placeOf(permit, waitedMs, signal);
  }

  #placeOf(permit: Disposable, waitedMs: number, signal: AbortSignal): Place {
    let isHeld = true;
    const giveBack = () => {
      if (!isHeld) return;
      isHeld = false;
      this.#running -= 1;
      signal.removeEventListener('abort', giveBack);
      permit[Symbol.dispose]();
    };
    // Who is aborted may leave its stream behind without closing it.
    signal.addEventListener('abort', giveBack, { once: true });
    if (signal.aborted) giveBack();
    return { waitedMs, [Symbol.dispose]: giveBack };
  }
}

// Has a local server load a model before somebody waits for its answer: Ollama by its own call for that,
// the others by a completion of one token. While it says that it is loading, it is asked again.

type Loading = {
  readonly server: LocalAddress & { readonly vendor: LocalVendor; readonly peer?: string };
  readonly model: string;
  readonly clock: Clock;
  /** Undefined: nobody is there to account for it, and it costs nothing. */
  readonly meter: CallMeter | undefined;
  enter(): Promise<Place>;
};

const LOAD_TIMEOUT_MS = 120_000;
/** Between the tries. */
const WAITS_MS = [2000, 4000, 8000];

/** Whether it is loaded now. @throws what the meter throws, the signal's reason */
export async function loadModel(loading: Loading, signal: AbortSignal): Promise<boolean> {
  for (let tries = 0; ; tries += 1) {
    const answer = await tryOnce(loading, signal);
    if (answer !== undefined && isOk(answer)) return true;
    const waitMs = WAITS_MS[tries];
    const isLoading = answer !== undefined && LOADING.test(JSON.stringify(answer.body ?? ''));
    if (!isLoading || waitMs === undefined) return false;
    await loading.clock.sleep(waitMs, signal);
  }
}

async function tryOnce(
  { server, model, meter, enter }: Loading,
  signal: AbortSignal,
): Promise<LocalAnswer | undefined> {
  const place = await enter();
  let attempt: MeteredTry | undefined;
  let answer: LocalAnswer | undefined;
  try {
    const at = { ...basedAt(server.apiBase), waitedMs: place.waitedMs };
    attempt = await meter?.begin(localModelName(server, model), signal, at);
    answer = await askLocal(server, askFor(server.vendor, model), signal);
    return answer;
  } finally {
    attempt?.end(endOf(answer));
    place[Symbol.dispose]();
  }
}

function askFor(vendor: LocalVendor, model: string): LocalQuestion {
  const timeoutMs = LOAD_TIMEOUT_MS;
  if (vendor === 'ollama') {
    return { path: '/api/generate', below: 'root', body: { model, stream: false }, timeoutMs };
  }
  const messages = [{ role: 'user', content: 'Hi' }];
  const body = { model, messages, max_tokens: 1, stream: false };
  return { path: '/chat/completions', below: 'apiBase', body, timeoutMs };
}

function endOf(answer: LocalAnswer | undefined): Parameters<MeteredTry['end']>[0] {
  const answerChars = 0;
  if (answer === undefined) return { kind: 'failed', failure: { kind: 'network' }, answerChars };
  if (isOk(answer)) return { kind: 'finished', answerChars };
  return { kind: 'failed', failure: { kind: 'server', status: answer.status }, answerChars };
}
