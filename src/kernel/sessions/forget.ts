// Erases text from conversations: the only place that rewrites session files (ADR 0014). Each file
// is replaced in one step while its session is idle, so a kill leaves it intact.

import { readdir, readFile, realpath, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedIfMissing, writeAtomic } from '../../lib/files/files.ts';
import { firstSeqOf, type SessionKey, sessionKey } from '../message/ids.ts';
import { ARCHIVE_FOLDER, allFiles, keyOfFile, sessionNames } from './catalog.ts';
import { DAMAGED_SUFFIX, readDecoded, stemOf, textOfDamage } from './file-lines.ts';
import { chatOfSession } from './index-file.ts';
import type { Unwritten } from './journal.ts';
import { turnOf } from './rules/carry.ts';
import {
  decodeLine,
  decodeStem,
  encodeEntry,
  encodeKey,
  formatName,
  parseName,
  type SessionFileName,
} from './rules/file.ts';
import { forgetIn, forgetNodes, type Holds, isOfChats, wordsOfEntry } from './rules/forgetting.ts';

/** The files of conversations, for work on everything recorded. */
export type SessionFiles = {
  readonly folder: string;
  /** Resolves when everything committed is in the files, except for the sessions it returns. */
  complete(): Promise<Unwritten>;
  /** Runs while nothing else uses the session and all of it is in its files. */
  exclusively(session: SessionKey, task: () => Promise<void>): Promise<void>;
};

type ForgettablePlace = {
  readonly session: SessionKey;
  readonly file: string;
  /** Epoch milliseconds; undefined for a line that could not be read. */
  readonly at: number | undefined;
  readonly text: string;
};

/**
 * @throws the error that kept a conversation of these chats from its file: none of it is silently
 * skipped
 */
export function complain(unwritten: Unwritten, chats?: readonly string[]): void {
  for (const [session, error] of unwritten)
    if (chats === undefined || isOfChats({ session }, chats)) throw error;
}

const THREAD_MARK = encodeKey(sessionKey('#'));

/** Every entry that contains the words, in all conversations of these chats, oldest first. */
export async function* findToForget(
  { folder, complete }: Pick<SessionFiles, 'folder' | 'complete'>,
  chats: readonly string[],
  holds: Holds,
): AsyncGenerator<ForgettablePlace, void, void> {
  complain(await complete(), chats);
  for (const { path, name } of await filesOf(folder, chats)) {
    const session = await keyOfFile({ path, name });
    for await (const line of readDecoded(path)) {
      if (line.kind !== 'entry' || line.carried) continue;
      const { entry } = line;
      if (forgetIn(entry, holds) === undefined || entry.role === 'turn_end') continue;
      yield { session, file: formatName(name), at: entry.at, text: wordsOfEntry(entry, holds) };
    }
    for (const text of (await notedDamage(path)).map(textOfDamage).filter(holds)) {
      yield { session, file: formatName(name) + DAMAGED_SUFFIX, at: undefined, text };
    }
  }
}

/** The unreadable lines of a session; an empty last one is left out. */
async function notedDamage(path: string): Promise<readonly string[]> {
  const text = await readFile(path + DAMAGED_SUFFIX, 'utf8').catch(undefinedIfMissing);
  return (text ?? '').split('\n').filter((line) => line !== '');
}

/** Returns the number of erased lines. */
async function forgetDamage(path: string, holds: Holds): Promise<number> {
  const lines = await notedDamage(path);
  const kept = lines.filter((line) => !holds(textOfDamage(line)));
  if (kept.length === 0 && lines.length > 0) await rm(path + DAMAGED_SUFFIX, { force: true });
  else if (kept.length < lines.length) {
    await writeAtomic(path + DAMAGED_SUFFIX, `${kept.join('\n')}\n`);
  }
  return lines.length - kept.length;
}

/** Returns the names of the changed files, and how many entries in them were changed. */
export async function forgetInSessions(
  { folder, complete, exclusively }: SessionFiles,
  chats: readonly string[],
  holds: Holds,
): Promise<{ readonly files: readonly SessionFileName[]; readonly entries: number }> {
  const files: SessionFileName[] = [];
  let entries = 0;
  complain(await complete(), chats);
  await removeTorn(folder, chats);
  await forgetInNodes({ folder, exclusively }, chats, holds);
  for (const { path, name } of await filesOf(folder, chats)) {
    await exclusively(await keyOfFile({ path, name }), async () => {
      const changed = await rewrite(path, holds);
      if (changed > 0) files.push(name);
      entries += changed + (await forgetDamage(path, holds));
    });
  }
  return { files, entries };
}

/**
 * A summary node may paraphrase what is erased, in whichever file it is. Nodes go first: after a
 * kill the words are found again, and so are the nodes.
 */
async function forgetInNodes(
  { folder, exclusively }: Pick<SessionFiles, 'folder' | 'exclusively'>,
  chats: readonly string[],
  holds: Holds,
): Promise<void> {
  const files = await filesOf(folder, chats);
  const turns = new Map<SessionKey, Set<number>>();
  for (const { path, name } of files) {
    const session = await keyOfFile({ path, name });
    const known = turns.get(session) ?? new Set<number>();
    for await (const line of readDecoded(path)) {
      const turn = line.kind === 'entry' ? turnOf(line.entry) : undefined;
      const seq = turn === undefined ? undefined : firstSeqOf(turn);
      if (line.kind !== 'entry' || seq === undefined) continue;
      if (forgetIn(line.entry, holds) !== undefined) known.add(seq);
    }
    turns.set(session, known);
  }
  for (const { path, name } of files) {
    const session = await keyOfFile({ path, name });
    const own = [...(turns.get(session) ?? [])];
    if (own.length > 0) await exclusively(session, () => rewriteNodes(path, own));
  }
}

async function rewriteNodes(path: string, turns: readonly number[]): Promise<void> {
  const text = await readFile(path, 'utf8').catch(undefinedIfMissing);
  const lines = text?.split('\n') ?? [];
  const after = lines.map((line) => {
    const decoded = decodeLine(line);
    const entry = decoded.kind === 'entry' ? forgetNodes(decoded.entry, turns) : undefined;
    return decoded.kind === 'entry' && entry ? encodeEntry(entry, decoded.carried) : line;
  });
  if (after.some((line, index) => line !== lines[index])) {
    await writeAtomic(await realpath(path), after.join('\n'));
  }
}

/** The keys of all conversations of these chats that have a file. */
export async function sessionsOfChats(
  { folder, complete }: Pick<SessionFiles, 'folder' | 'complete'>,
  chats: readonly string[],
): Promise<readonly SessionKey[]> {
  await complete();
  const byStem = Map.groupBy(await filesOf(folder, chats), ({ name }) => name.stem);
  const firsts = [...byStem.values()].flatMap(([first]) => first ?? []);
  return Promise.all(firsts.map(keyOfFile));
}

/** The chats of a whole channel that have a conversation on disk. */
export async function chatsOfChannel(
  { folder, complete }: Pick<SessionFiles, 'folder' | 'complete'>,
  channel: string,
): Promise<readonly string[]> {
  await complete();
  const prefix = encodeKey(sessionKey(`${channel}:`));
  const names = await sessionNames(folder, ({ stem }) => stem.startsWith(prefix));
  const keys = new Set(names.flatMap(({ stem }) => decodeStem(stem) ?? []));
  return [...new Set([...keys].map(chatOfSession))];
}

/** Left by a process that was killed while rewriting. */
const TORN = /^\.(.+\.jsonl)\.[0-9a-f-]{36}\.tmp$/;

async function removeTorn(folder: string, chats: readonly string[]): Promise<void> {
  const isTheirs = ofChats(chats);
  for (const place of [join(folder, ARCHIVE_FOLDER), folder]) {
    for (const torn of (await readdir(place).catch(undefinedIfMissing)) ?? []) {
      const name = parseName(TORN.exec(torn)?.[1] ?? '');
      if (name !== undefined && isTheirs(name)) await rm(join(place, torn), { force: true });
    }
  }
}

/** By file name: whether it belongs to one of these chats, including topics. */
export function ofChats(
  chats: readonly string[],
): (name: Pick<SessionFileName, 'stem'>) => boolean {
  const stems = chats.map((chat) => stemOf(sessionKey(chat)));
  return ({ stem }) => stems.some((own) => stem === own || stem.startsWith(own + THREAD_MARK));
}

const filesOf = (folder: string, chats: readonly string[]) => allFiles(folder, ofChats(chats));

/** How many of its entries contained the words; carried entries are not counted. */
async function rewrite(path: string, holds: Holds): Promise<number> {
  if ((await stat(path).catch(undefinedIfMissing)) === undefined) return 0;
  let changed = 0;
  let isTouched = false;
  const lines = (await readFile(path, 'utf8')).split('\n').map((line) => {
    if (line === '') return line;
    const decoded = decodeLine(line);
    // A damaged line is no entry any more, but may contain the words.
    if (decoded.kind === 'damaged' && holds(line)) isTouched = true;
    if (decoded.kind === 'damaged') return holds(line) ? '' : line;
    if (decoded.kind === 'header') return line;
    const after = forgetIn(decoded.entry, holds);
    if (after === undefined) return line;
    isTouched = true;
    if (!decoded.carried && after.role !== 'turn_end') changed += 1;
    return encodeEntry(after, decoded.carried);
  });
  // The target of a link contains the text.
  if (isTouched) await writeAtomic(await realpath(path), lines.join('\n'));
  return changed;
}
