// What models were asked with, on the disk: a file for each conversation in a folder of its own, a line
// for each piece, once. A line that was torn is passed over; its piece counts as not kept.

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { ARCHIVE_FOLDER, readSession, sessionNames } from '../../kernel/sessions/catalog.ts';
import { orUndefined, stemOf } from '../../kernel/sessions/file-errors.ts';
import { readLines } from '../../kernel/sessions/read-lines.ts';
import { isoTime } from '../../kernel/sessions/rules/file.ts';
import { writeAtomic } from '../../lib/files/files.ts';
import { type AskedPiece, type AskedTexts, namedIn } from './rules/asked.ts';

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

// Deletes what models were asked with along with the conversations it belongs to: what no entry that is
// left names, and all of a conversation that is gone.

/** Of these conversations, and of such as have no file any more; `before` in epoch milliseconds. */
export async function purgeAsked(
  sessions: string,
  stems: ReadonlySet<string>,
  before: number,
): Promise<void> {
  const names = (await readdir(join(sessions, ASKED_FOLDER)).catch(orUndefined('ENOENT'))) ?? [];
  if (names.length === 0) return;
  const left = await stemsIn(sessions);
  for (const name of names.filter((each) => each.endsWith(ASKED_SUFFIX))) {
    const stem = name.slice(0, -ASKED_SUFFIX.length);
    if (stems.has(stem) || !left.has(stem)) await purgeOne(sessions, stem, before);
  }
}

/** A turn that runs may name what is young and stands nowhere yet. */
async function purgeOne(sessions: string, stem: string, before: number): Promise<void> {
  const path = askedPath(sessions, stem);
  const lines = (await readAskedLines(path)) ?? [];
  const named = await namedBy(sessions, stem, lines);
  const kept = lines.filter(({ print, at }) => at >= before || named.has(print));
  if (kept.length < lines.length) await writeAskedLines(path, kept);
}

async function namedBy(sessions: string, stem: string, lines: readonly AskedLine[]) {
  const texts = new Map(lines.map(({ print, text }) => [print, text]));
  const named = new Set<string>();
  for await (const entry of readSession(sessions, stem)) {
    if (entry.role === 'assistant' && entry.asked !== undefined) named.add(entry.asked);
  }
  for (const ask of [...named]) for (const each of namedIn(texts.get(ask) ?? '')) named.add(each);
  return named;
}

/** Of all conversations that have a file. */
async function stemsIn(sessions: string): Promise<ReadonlySet<string>> {
  const places = [join(sessions, ARCHIVE_FOLDER), sessions];
  const names = (await Promise.all(places.map((place) => sessionNames(place)))).flat();
  return new Set(names.map(({ stem }) => stem));
}

export const removeAsked = (sessions: string, stem: string) =>
  rm(askedPath(sessions, stem), { force: true });

export const removeAllAsked = (sessions: string) =>
  rm(join(sessions, ASKED_FOLDER), { recursive: true, force: true });
