// Deletes what models were asked with along with the conversations it belongs to: what no entry that is
// left names, and all of a conversation that is gone.

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { namedIn } from '../core/asked.ts';
import {
  ASKED_FOLDER,
  ASKED_SUFFIX,
  type AskedLine,
  askedPath,
  readAskedLines,
  writeAskedLines,
} from './asked-lines.ts';
import { ARCHIVE_FOLDER, readSession, sessionNames } from './catalog.ts';
import { orUndefined } from './file-errors.ts';

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
