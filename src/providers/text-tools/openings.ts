// Whether what begins here may be for the program: JSON by its first key, a fence around such JSON,
// or a mark of a dialect. Prose and code are given back at the first character that decides it.

import { BARE_PYTHON, type Dialect, dialectOf, MISQUOTED } from './dialects.ts';
import { PROTOCOL_KEYS, TRAINED_KEYS } from './protocol.ts';

export type Reading = {
  /** Names of the tools. */
  readonly offered: ReadonlySet<string>;
  readonly mayCall: boolean;
  /** The model was told of the protocol, or sees it in its own earlier calls. */
  readonly isSpoken: boolean;
  /** It was told to answer in the protocol alone. */
  readonly isAsked: boolean;
};

export type Spot = {
  /** Nothing was said before. */
  readonly isStart: boolean;
  readonly isLineStart: boolean;
  readonly isFenced: boolean;
};

export type Opening =
  | { readonly kind: 'no' }
  | { readonly kind: 'may' }
  | { readonly kind: 'object' }
  | { readonly kind: 'fence' }
  | { readonly kind: 'span'; readonly dialect: Dialect };

const NO: Opening = { kind: 'no' };
const MAY: Opening = { kind: 'may' };
const OBJECT: Opening = { kind: 'object' };

/** Could anything of ours begin with it? */
export const mayOpen = (char: string, { isLineStart }: Spot): boolean =>
  char === '{' || char === '[' || char === '<' || (char === '`' && isLineStart);

/** Nobody writes more before a first key, or behind the marks of a fence. */
const MAX_OPENING_CHARS = 200;

export function openingOf(text: string, spot: Spot, reading: Reading): Opening {
  if (text.length > MAX_OPENING_CHARS) return NO;
  if (text.startsWith('`')) return fenceOpening(text);
  const dialect = spot.isFenced ? 'no' : dialectOf(text);
  if (typeof dialect === 'object') return { kind: 'span', dialect };
  const other = text.startsWith('<') ? NO : jsonOrPython(text, spot, reading);
  return other.kind === 'no' && dialect === 'may' ? MAY : other;
}

/** Only a fence that may hold JSON or a call is looked into. */
function fenceOpening(text: string): Opening {
  if (/^`{3,}\s*(?:json\w*|tool\w*|javascript|js)?[ \t]*\r?\n$/i.test(text)) {
    return { kind: 'fence' };
  }
  return /^`{1,2}$|^`{3,}[^`\n]*$/.test(text) ? MAY : NO;
}

function jsonOrPython(text: string, spot: Spot, reading: Reading): Opening {
  const [, called, bracket] = /^\[\s*([\w.-]*)(\(?)$/.exec(text) ?? [];
  if (called !== undefined && called !== '' && spot.isStart && !spot.isFenced) {
    const isOffered = [...reading.offered].some((name) => name.startsWith(called));
    if (bracket === '') return isOffered ? MAY : NO;
    return reading.offered.has(called) ? { kind: 'span', dialect: BARE_PYTHON } : NO;
  }
  return jsonOpening(text, spot, reading);
}

const MISQUOTED_OPENING = /^\{\s*['‘’“”„]([a-z_]*)(['‘’“”]?)$/;
const KEY_OPENING = /^(?:\[\s*)?(?:\{\s*(?:"([^"\\]*)("?))?)?$/;
/** Of what OpenAI's servers send, where a model repeats it. */
const WRAPPING_KEYS = ['type', 'id'];
const MEANT_KEYS = ['args', 'response', 'action', 'tool_call', 'tool_name', 'function_call'];

/** Only where a model was told to answer in the protocol alone: elsewhere it may be a line of Python. */
function misquotedOpening(
  text: string,
  { isStart, isFenced }: Spot,
  { isAsked }: Reading,
): Opening {
  const [, key, quote] = MISQUOTED_OPENING.exec(text) ?? [];
  if (key === undefined || !isStart || isFenced || !isAsked) return NO;
  if (quote === '') return PROTOCOL_KEYS.some((one) => one.startsWith(key)) ? MAY : NO;
  return PROTOCOL_KEYS.includes(key) ? { kind: 'span', dialect: MISQUOTED } : NO;
}

function jsonOpening(text: string, spot: Spot, reading: Reading): Opening {
  const misquoted = misquotedOpening(text, spot, reading);
  if (misquoted.kind !== 'no') return misquoted;
  const match = KEY_OPENING.exec(text);
  if (match === null) return NO;
  const [, key, quote] = match;
  if (key === undefined) return MAY;
  if (spot.isStart && reading.isAsked && !spot.isFenced && text.startsWith('{')) return OBJECT;
  const keys = keysAt(spot, reading);
  if (quote === '"') return keys.includes(key) ? OBJECT : NO;
  return keys.some((one) => one.startsWith(key)) ? MAY : NO;
}

function keysAt(spot: Spot, { isSpoken, isAsked }: Reading): readonly string[] {
  const spoken = isSpoken ? PROTOCOL_KEYS : [];
  const meant = isAsked && spot.isStart ? MEANT_KEYS : [];
  const isTrained = spot.isStart || (isAsked && (spot.isLineStart || spot.isFenced));
  const trained = isTrained ? [...TRAINED_KEYS, ...(spot.isStart ? WRAPPING_KEYS : [])] : [];
  return [...spoken, ...meant, ...trained];
}
