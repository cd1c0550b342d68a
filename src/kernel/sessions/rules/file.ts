// One line of a session file, written and read. Fields keep the names of the original's files;
// unknown fields are tolerated, so that an older program reads a newer file.

import { fieldsOf, parseJson } from '../../../lib/json/json.ts';
import { type SessionKey, sessionKey } from '../../message/ids.ts';
import type { TranscriptEntry } from '../../message/transcript.ts';
import { type DiskHeader, diskEntry, diskHeader, isoTime, toDisk } from './entry.ts';

export type SessionHeader = {
  readonly key: SessionKey;
  readonly createdAt: number;
  /** The file this one goes on from. */
  readonly continues?: string;
  /** Lines after this one that repeat what an older file holds. */
  readonly carried: number;
};

export type SessionLine =
  | { readonly kind: 'header'; readonly header: SessionHeader }
  | { readonly kind: 'entry'; readonly entry: TranscriptEntry; readonly carried: boolean }
  | { readonly kind: 'damaged' };

/** How the lines of messages begin; a carried line begins otherwise, so counting is searching. */
export const MESSAGE_LINE_STARTS = ['{"role":"user"', '{"role":"assistant"'] as const;

export function encodeHeader(value: SessionHeader): string {
  const created = isoTime(value.createdAt);
  return JSON.stringify({
    _type: 'metadata',
    session_key: value.key,
    created_at: created,
    updated_at: created,
    metadata: {
      ...(value.continues === undefined ? {} : { continues: value.continues }),
      carried: value.carried,
    },
  });
}

export function encodeEntry(entry: TranscriptEntry, carried = false): string {
  return JSON.stringify(carried ? { carried: true, ...toDisk(entry) } : toDisk(entry));
}

/** Reads one line without its newline. Never throws. */
export function decodeLine(line: string): SessionLine {
  const value = fieldsOf(parseJson(line));
  if (value === undefined) return { kind: 'damaged' };
  if (value['_type'] === 'metadata') {
    const parsed = diskHeader.safeParse(value);
    return parsed.success ? { kind: 'header', header: toHeader(parsed.data) } : { kind: 'damaged' };
  }
  const parsed = diskEntry.safeParse(value);
  if (!parsed.success) return { kind: 'damaged' };
  return { kind: 'entry', entry: parsed.data, carried: value['carried'] === true };
}

function toHeader(disk: DiskHeader): SessionHeader {
  const { continues, carried } = disk.metadata;
  return {
    key: disk.session_key,
    createdAt: disk.created_at,
    ...(continues === undefined ? {} : { continues }),
    carried,
  };
}

// Names of session files: `{key, unsafe characters percent-encoded}_{YYYY-MM-DD}[_{part}].jsonl`.
// A name tells session, day and part, and different sessions never share one, also not on a file
// system that is blind to case.

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
