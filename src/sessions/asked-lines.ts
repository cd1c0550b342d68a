// What models were asked with, on the disk: a file for each conversation in a folder of its own, a line
// for each piece, once. A line that was torn is passed over; its piece counts as not kept.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AskedPiece, AskedTexts } from '../core/asked.ts';
import type { SessionKey } from '../core/ids.ts';
import { isoTime } from '../core/session/file.ts';
import { writeAtomic } from '../lib/files.ts';
import { orUndefined } from './file-errors.ts';
import { readLines } from './read-lines.ts';
import { stemOf } from './stem.ts';

/** Of the sessions folder. */
export const ASKED_FOLDER = 'asked';
export const ASKED_SUFFIX = '.jsonl';

/** `at`: when it was first asked with, epoch milliseconds. */
export type AskedLine = AskedPiece & { readonly at: number };

export const askedPath = (sessions: string, stem: string) =>
  join(sessions, ASKED_FOLDER, `${stem}${ASKED_SUFFIX}`);

export const encodeAsked = (line: AskedLine) => askedLine(line, JSON.stringify(line.text));

/** `json`: the text, encoded already. */
export const askedLine = ({ print, at }: Omit<AskedLine, 'text'>, json: string) =>
  `{"print":${JSON.stringify(print)},"at":"${isoTime(at)}","text":${json}}\n`;

/** Undefined where there is no such file. */
export async function readAskedLines(path: string): Promise<readonly AskedLine[] | undefined> {
  const lines: AskedLine[] = [];
  try {
    for await (const { bytes } of readLines(path)) lines.push(...decoded(bytes.toString('utf8')));
  } catch (error) {
    return orUndefined('ENOENT')(error);
  }
  return lines;
}

function decoded(line: string): readonly AskedLine[] {
  try {
    const { print, at, text } = JSON.parse(line);
    if (typeof print !== 'string' || typeof text !== 'string') return [];
    return [{ print, text, at: Date.parse(at) || 0 }];
  } catch {
    return [];
  }
}

/** Replaces the file; without lines there is none. */
export async function writeAskedLines(path: string, lines: readonly AskedLine[]): Promise<void> {
  if (lines.length === 0) await rm(path, { force: true });
  else await writeAtomic(path, lines.map(encodeAsked).join(''));
}

/** All that is kept of a conversation; `sessions`: their folder. */
export async function readAsked(sessions: string, session: SessionKey): Promise<AskedTexts> {
  const lines = await readAskedLines(askedPath(sessions, stemOf(session)));
  return new Map((lines ?? []).map(({ print, text }) => [print, text]));
}
