// Chooses the engines of transcription and speech from the configuration and the known keys;
// creating an engine needs nothing else.

import type { VoiceConfig } from '../settings.ts';

/** How a server is reached. */
export type EngineAccess = {
  readonly apiBase: string;
  readonly apiKey: string;
  /** The setting; default: none. */
  readonly proxy?: string;
};

export type KnownAccess = {
  /** Undefined where no credentials are known. */
  to(vendor: 'openai' | 'groq'): EngineAccess | undefined;
  /** The proxy for an address of the voice settings. */
  readonly proxy: string;
};

export type TranscriptionEngine = {
  readonly language: string;
  readonly timeoutMs: number;
  /** Price per minute of audio; undefined where unknown. */
  readonly price?: number | undefined;
} & (
  | (EngineAccess & { readonly kind: 'server'; readonly name: string; readonly model: string })
  | { readonly kind: 'command'; readonly argv: Argv }
);

export type SpeechEngine = {
  readonly timeoutMs: number;
  /** Price per million characters; undefined where unknown. */
  readonly price?: number | undefined;
} & (
  | (EngineAccess & {
      readonly kind: 'server';
      readonly name: string;
      readonly model: string;
      readonly voice: string;
      readonly format: 'opus' | 'mp3' | 'wav';
    })
  | { readonly kind: 'command'; readonly argv: Argv }
);

export type Argv = readonly [string, ...string[]];

const MODELS = { openai: 'whisper-1', groq: 'whisper-large-v3-turbo' } as const;

export function transcriptionEngine(
  { transcription }: VoiceConfig,
  access: KnownAccess,
  currency: string,
): TranscriptionEngine | undefined {
  const { language, model, pricePerMinute, timeoutSecs } = transcription;
  const common = { language, timeoutMs: timeoutSecs * 1000 };
  const engine = engineOf(transcription, ['groq', 'openai'], access);
  if (engine === undefined) return undefined;
  if (engine.kind === 'command') return { ...common, ...engine, price: pricePerMinute ?? 0 };
  const isVendors = transcription.apiBase === '';
  const asked = { model: model || MODELS[engine.name], isVendors, currency };
  const price = pricePerMinute ?? listed(LISTENING, asked);
  return { ...common, ...engine, model: asked.model, price };
}

export function speechEngine(
  { speech }: VoiceConfig,
  access: KnownAccess,
  currency: string,
): SpeechEngine | undefined {
  const { model, voice, format, pricePerMillionChars } = speech;
  const timeoutMs = speech.timeoutSecs * 1000;
  const engine = engineOf(speech, ['openai'], access);
  if (engine === undefined) return undefined;
  if (engine.kind === 'command') return { timeoutMs, ...engine, price: pricePerMillionChars ?? 0 };
  const asked = { model, isVendors: speech.apiBase === '', currency };
  const price = pricePerMillionChars ?? listed(SPEAKING, asked);
  return { timeoutMs, ...engine, price, model, voice, format };
}

type Vendor = 'openai' | 'groq';

type EngineSettings = Omit<EngineAccess, 'proxy'> & {
  readonly engine: 'auto' | Vendor | 'command' | 'off';
  readonly command: readonly string[];
};

type Engine =
  | (EngineAccess & { readonly kind: 'server'; readonly name: Vendor })
  | { readonly kind: 'command'; readonly argv: Argv };

/** A configured address never gets the key of another vendor. */
function engineOf(
  { engine, command, apiBase, apiKey }: EngineSettings,
  order: readonly Vendor[],
  access: KnownAccess,
): Engine | undefined {
  if (engine === 'off') return undefined;
  if (engine === 'command') {
    const [program = '', ...args] = command;
    return program === '' ? undefined : { kind: engine, argv: [program, ...args] };
  }
  if (apiBase !== '') {
    const name = engine === 'auto' ? 'openai' : engine;
    const own = { apiBase: apiBase.replace(/\/+$/, ''), apiKey, proxy: access.proxy };
    return { kind: 'server', name, ...own };
  }
  for (const name of engine === 'auto' ? order : [engine]) {
    const known = access.to(name);
    const key = apiKey || known?.apiKey || '';
    if (known !== undefined && (engine !== 'auto' || key !== '')) {
      return { kind: 'server', name, ...known, apiKey: key };
    }
  }
  return undefined;
}

// Cost of transcription and speech, in US dollars by the vendors' price lists, and the longest
// duration of audio of unknown length. An engine at a configured address has no price unless one is
// set.

const PRICE_CURRENCY = 'USD';
const MICROS = 1_000_000;
const MINUTE_MS = 60_000;
/** The least duration that is charged by time (Groq, speech to text). */
const LEAST_MS = 10_000;
/** Engines process windows of this length and count each window that began (Whisper). */
const WINDOW_MS = 30_000;
/** Audio of the leanest codec of the channels, in bytes per second. */
const LEAST_BYTES_PER_SECOND = 1000;

/** Per minute of audio. */
const LISTENING: readonly (readonly [pattern: RegExp, price: number])[] = [
  [/^whisper-1$/, 0.006],
  [/^gpt-4o-transcribe/, 0.006],
  [/^gpt-4o-mini-transcribe/, 0.003],
  [/^whisper-large-v3-turbo$/, 0.04 / 60],
  [/^whisper-large-v3$/, 0.111 / 60],
];
/** Per million characters; for gpt-4o-mini-tts converted from its price per minute. */
const SPEAKING: readonly (readonly [pattern: RegExp, price: number])[] = [
  [/^tts-1-hd/, 30],
  [/^tts-1/, 15],
  [/^gpt-4o-mini-tts/, 17],
];

type PricedEngine = {
  readonly model: string;
  /** The engine is at its vendor's address. */
  readonly isVendors: boolean;
  readonly currency: string;
};

/** Undefined where the price is unknown. */
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

/**
 * Millionths of the currency, rounded up: a price per million characters equals millionths per
 * character.
 */
export function speakingCost(pricePerMillion: number, text: string): number {
  return Math.ceil(pricePerMillion * text.length);
}

/** The longest possible duration: the sender's statement may be wrong. */
export function longestMs(sizeBytes: number, saidMs: number, maxMs: number): number {
  const bySize = Math.ceil((sizeBytes / LEAST_BYTES_PER_SECOND) * 1000);
  return Math.min(maxMs, Math.max(bySize, saidMs));
}

/** An engine's statement of the duration counts only if the audio can be that long. */
export function believedMs(engineMs: number | undefined, saidMs: number, worstMs: number): number {
  const mostMs = Math.ceil(worstMs / WINDOW_MS) * WINDOW_MS;
  return engineMs !== undefined && engineMs <= mostMs ? engineMs : saidMs || worstMs;
}
