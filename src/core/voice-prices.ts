// What listening and speaking cost, in US dollars as the vendors list it, and how long a sound may be
// that says nothing of its length. An engine at an address of its own has no price unless it is set.

const PRICE_CURRENCY = 'USD';
const MICROS = 1_000_000;
const MINUTE_MS = 60_000;
/** Whoever charges by time charges so much at least (Groq, speech to text). */
const LEAST_MS = 10_000;
/** Engines listen in windows of this length, and count a window that is begun (Whisper). */
const WINDOW_MS = 30_000;
/** Speech in the leanest codec of the doors, bytes a second. */
const LEAST_BYTES_PER_SECOND = 1000;

/** By a minute of sound. */
const LISTENING: readonly (readonly [pattern: RegExp, price: number])[] = [
  [/^whisper-1$/, 0.006],
  [/^gpt-4o-transcribe/, 0.006],
  [/^gpt-4o-mini-transcribe/, 0.003],
  [/^whisper-large-v3-turbo$/, 0.04 / 60],
  [/^whisper-large-v3$/, 0.111 / 60],
];
/** By a million characters; for gpt-4o-mini-tts from its price of a minute. */
const SPEAKING: readonly (readonly [pattern: RegExp, price: number])[] = [
  [/^tts-1-hd/, 30],
  [/^tts-1/, 15],
  [/^gpt-4o-mini-tts/, 17],
];

export type PricedEngine = {
  readonly model: string;
  /** It is asked where its vendor is, not at an address of its own. */
  readonly isVendors: boolean;
  readonly currency: string;
};

/** Money for a minute; undefined where nobody knows it. */
export const listeningPrice = (engine: PricedEngine) => listed(LISTENING, engine);

/** Money for a million characters; undefined where nobody knows it. */
export const speakingPrice = (engine: PricedEngine) => listed(SPEAKING, engine);

function listed(
  table: typeof LISTENING,
  { model, isVendors, currency }: PricedEngine,
): number | undefined {
  if (!isVendors || currency !== PRICE_CURRENCY) return undefined;
  return table.find(([pattern]) => pattern.test(model))?.[1];
}

/** Millionths of the currency, rounded up. */
export function listeningCost(pricePerMinute: number, durationMs: number): number {
  return Math.ceil((pricePerMinute * MICROS * Math.max(LEAST_MS, durationMs)) / MINUTE_MS);
}

/** Millionths of the currency, rounded up: a price of a million characters is one of a character. */
export function speakingCost(pricePerMillion: number, text: string): number {
  return Math.ceil(pricePerMillion * text.length);
}

/** The longest a sound can be: what its sender says of it may be wrong. */
export function longestMs(sizeBytes: number, saidMs: number, maxMs: number): number {
  const bySize = Math.ceil((sizeBytes / LEAST_BYTES_PER_SECOND) * 1000);
  return Math.min(maxMs, Math.max(bySize, saidMs));
}

/** What an engine says it took is believed as far as the sound can be as long as that. */
export function believedMs(engineMs: number | undefined, saidMs: number, worstMs: number): number {
  const mostMs = Math.ceil(worstMs / WINDOW_MS) * WINDOW_MS;
  return engineMs !== undefined && engineMs <= mostMs ? engineMs : saidMs || worstMs;
}
