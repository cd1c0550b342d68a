// Which engine listens or speaks, settled from the configuration and the keys that are known; whoever
// builds engines needs nothing else.

import type { VoiceConfig } from './config/voice.ts';
import { listeningPrice, speakingPrice } from './voice-prices.ts';

/** How a server is reached. */
export type EngineAccess = { readonly apiBase: string; readonly apiKey: string };

/** Undefined where nothing is known that would let us in. */
export type AccessTo = (vendor: 'openai' | 'groq') => EngineAccess | undefined;

export type TranscriptionEngine = {
  readonly language: string;
  readonly timeoutMs: number;
  /** Money for a minute of sound; undefined where nobody knows it. */
  readonly price?: number | undefined;
} & (
  | (EngineAccess & { readonly kind: 'server'; readonly name: string; readonly model: string })
  | { readonly kind: 'command'; readonly argv: Argv }
);

export type SpeechEngine = {
  readonly timeoutMs: number;
  /** Money for a million characters; undefined where nobody knows it. */
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
  accessTo: AccessTo,
  currency: string,
): TranscriptionEngine | undefined {
  const { engine, language, model, command, pricePerMinute } = transcription;
  const common = { language, timeoutMs: transcription.timeoutSecs * 1000 };
  if (engine === 'off') return undefined;
  if (engine === 'command') {
    const argv = argvOf(command);
    return argv && { ...common, price: pricePerMinute ?? 0, kind: 'command', argv };
  }
  const found = serverOf(engine, ['groq', 'openai'], transcription, accessTo);
  if (found === undefined) return undefined;
  const { name, access } = found;
  const asked = { model: model || MODELS[name], isVendors: transcription.apiBase === '', currency };
  const price = pricePerMinute ?? listeningPrice(asked);
  return { ...common, kind: 'server', name, ...access, model: asked.model, price };
}

export function speechEngine(
  { speech }: VoiceConfig,
  accessTo: AccessTo,
  currency: string,
): SpeechEngine | undefined {
  const { engine, model, voice, format, command, pricePerMillionChars } = speech;
  const timeoutMs = speech.timeoutSecs * 1000;
  if (engine === 'off') return undefined;
  if (engine === 'command') {
    const argv = argvOf(command);
    return argv && { timeoutMs, price: pricePerMillionChars ?? 0, kind: 'command', argv };
  }
  const found = serverOf(engine, ['openai'], speech, accessTo);
  const isVendors = speech.apiBase === '';
  const price = pricePerMillionChars ?? speakingPrice({ model, isVendors, currency });
  return (
    found && {
      ...{ timeoutMs, price, kind: 'server', name: found.name, ...found.access },
      ...{ model, voice, format },
    }
  );
}

type Vendor = 'openai' | 'groq';

/** An address of its own never gets the key of another one. */
function serverOf(
  engine: 'auto' | Vendor,
  order: readonly Vendor[],
  own: EngineAccess,
  accessTo: AccessTo,
): { readonly name: Vendor; readonly access: EngineAccess } | undefined {
  if (own.apiBase !== '') {
    const apiBase = own.apiBase.replace(/\/+$/, '');
    return { name: engine === 'auto' ? 'openai' : engine, access: { ...own, apiBase } };
  }
  const names = engine === 'auto' ? order : [engine];
  for (const name of names) {
    const known = accessTo(name);
    const apiKey = own.apiKey || known?.apiKey || '';
    if (known !== undefined && (engine !== 'auto' || apiKey !== '')) {
      return { name, access: { apiBase: known.apiBase, apiKey } };
    }
  }
  return undefined;
}

function argvOf(command: readonly string[]): Argv | undefined {
  const [program = '', ...args] = command;
  return program === '' ? undefined : [program, ...args];
}
