// Names of session files: `{key, unsafe characters percent-encoded}_{YYYY-MM-DD}[_{part}].jsonl`.
// A name tells session, day and part, and different sessions never share one, also not on a file
// system that is blind to case.

import { type SessionKey, sessionKey } from '../../message/ids.ts';

export type SessionFileName = {
  readonly stem: string;
  /** `YYYY-MM-DD` in the configured zone. */
  readonly day: string;
  /** 1 for the first file of a day. */
  readonly part: number;
};

const NAME = /^(.+)_(\d{4}-\d{2}-\d{2})(?:_([1-9]\d{0,8}))?\.jsonl$/;
const SAFE = /[a-z0-9@+=,._-]/;
/** Leaves room for day, part and suffixes within the usual 255 bytes of a file name. */
export const MAX_STEM_BYTES = 180;
const DAY_MS = 86_400_000;

/** The key with everything unsafe percent-encoded; capitals too, for case-blind file systems. */
export function encodeKey(key: SessionKey): string {
  let encoded = '';
  for (const character of key.toWellFormed()) {
    const safe = SAFE.test(character) && !(encoded === '' && character === '.');
    encoded += safe ? character : percent(character);
  }
  return encoded;
}

function percent(character: string): string {
  const encoded = encodeURIComponent(character);
  if (encoded !== character) return encoded;
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

/** The key a stem was made from; undefined for a shortened one, whose key only the file tells. */
export function decodeStem(stem: string): SessionKey | undefined {
  if (stem.includes('~')) return undefined;
  try {
    return sessionKey(decodeURIComponent(stem));
  } catch {
    return undefined;
  }
}

export function formatName(name: SessionFileName): string {
  const part = name.part === 1 ? '' : `_${name.part}`;
  return `${name.stem}_${name.day}${part}.jsonl`;
}

export function parseName(fileName: string): SessionFileName | undefined {
  const match = NAME.exec(fileName);
  if (match === null) return undefined;
  const [, stem = '', day = '', part] = match;
  return { stem, day, part: part === undefined ? 1 : Number(part) };
}

/** Negative when `a` is the older file of the same session. */
export function compareAge(a: SessionFileName, b: SessionFileName): number {
  if (a.day !== b.day) return a.day < b.day ? -1 : 1;
  return a.part - b.part;
}

/** The day and the `count - 1` days before it, newest first. */
export function daysBack(day: string, count: number): readonly string[] {
  const start = Date.parse(`${day}T00:00:00Z`);
  return Array.from({ length: count }, (_, index) =>
    new Date(start - index * DAY_MS).toISOString().slice(0, 10),
  );
}
