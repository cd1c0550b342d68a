// Indexes one session file: what was said in it, less what was taken back, and what was brought back in
// it. What was taken back leaves every file of the conversation.

import { stat } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { IndexedPart, TextIndex } from '../../features/memory/memory.ts';
import { firstSeqOf } from '../message/ids.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import { keyOfFile } from './catalog.ts';
import { orUndefined } from './file-errors.ts';
import { readLines } from './read-lines.ts';
import { turnOf } from './rules/carry.ts';
import { decodeLine } from './rules/file.ts';
import { formatName, parseName, type SessionFileName } from './rules/name.ts';
import { turnBrought } from './rules/restore.ts';

/** What the names of all sources begin with that are session files. */
export const SESSION_SOURCES = 'session/';
const MAX_PART_CHARS = 20_000;
const PARTS_AT_ONCE = 100;

/** Conversations of one chat, whatever the topic, are seen by the same people. */
export const scopeOfSession = (session: string) => `session:${chatOfSession(session)}`;

/** The key without the topic. */
export const chatOfSession = (session: string) => session.split('#', 1).join();

export const sourceOf = (name: SessionFileName) => SESSION_SOURCES + formatName(name);

/** Whether it was read from its beginning; else only what was appended since. */
export async function indexFile(
  index: TextIndex,
  path: string,
  name: SessionFileName,
): Promise<boolean> {
  const info = await stat(path).catch(orUndefined('ENOENT'));
  if (info === undefined) return false;
  const known = index.state(sourceOf(name));
  const stamp = `${info.ino}`;
  const isNew = known === undefined || known.stamp !== stamp || known.position > info.size;
  if (!isNew && known.position === info.size) return false;
  const key = await keyOfFile({ path, name });
  const source = { name: sourceOf(name), scope: scopeOfSession(key), label: key };
  let replaces = isNew;
  let position = isNew ? 0 : known.position;
  let parts: IndexedPart[] = [];
  const carried: TranscriptEntry[] = [];
  const write = () => {
    index.put(source, { stamp, position }, parts, replaces);
    replaces = false;
    parts = [];
  };
  for await (const line of readLines(path, position)) {
    if (!line.terminated) break;
    position = line.start + line.length;
    const decoded = decodeLine(line.bytes.toString('utf8'));
    if (decoded.kind !== 'entry') continue;
    const { entry } = decoded;
    if (entry.role === 'restore') {
      const turn = turnBrought(entry.brings);
      const back = carried.filter((one) => turn !== undefined && turnOf(one) === turn);
      parts.push(...back.flatMap(partsOf));
    } else if (decoded.carried) carried.push(entry);
    else if (entry.role === 'undo') {
      write();
      takeBack(index, name.stem, firstSeqOf(entry.undoes) ?? 0);
    } else parts.push(...partsOf(entry));
    if (parts.length < PARTS_AT_ONCE) continue;
    write();
    await nextTurn();
  }
  write();
  return isNew;
}

/** In all files: it may have begun in an earlier one. */
function takeBack(index: TextIndex, stem: string, turn: number): void {
  for (const source of index.sources(SESSION_SOURCES + stem)) {
    if (parseName(source.slice(SESSION_SOURCES.length))?.stem === stem) {
      index.removePlaces(source, [turn]);
    }
  }
}

/** What a person or the agent said; results of tools stay out of it, they are read where they came from. */
function partsOf(entry: TranscriptEntry): readonly IndexedPart[] {
  if (entry.role !== 'user' && entry.role !== 'assistant') return [];
  const { role, turnId, at } = entry;
  const isForeign = role === 'assistant' || entry.isForeign === true;
  const text = entry.text.slice(0, MAX_PART_CHARS).toWellFormed();
  if (text.trim() === '' || (role === 'assistant' && entry.isDraft === true)) return [];
  return [{ place: firstSeqOf(turnId) ?? 0, role, isForeign, text, at }];
}
