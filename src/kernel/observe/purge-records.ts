// Deletes what the program recorded about its own work on conversations: lines of metrics.jsonl and
// of the decisions of routers, and whole log files. The gateway may be running: it appends by path,
// and its log of today is emptied, never removed.

import { readdir, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { textIfThere, writeAtomic } from '../../lib/files/files.ts';
import { fieldsOf, parseJson } from '../../lib/json/json.ts';
import type { Home } from '../config/files/home.ts';
import { sessionKey } from '../message/ids.ts';
import { isOfChats } from '../sessions/rules/forgetting.ts';

export type PurgedRecords = {
  /** In metrics.jsonl and traces/. */
  readonly lines: number;
  readonly logs: number;
};

type RecordReach = {
  /** Epoch milliseconds. */
  readonly before: number;
  /** Only the records of these chats; logs are not kept by chat, so none of them goes. */
  readonly chats?: readonly string[] | undefined;
  /** The log of today too. */
  readonly isEverything?: boolean;
};

const FILE_MODE = 0o600;
const DAY_MS = 86_400_000;
const TRACE = /^\d{4}-\d{2}-\d{2}\.jsonl$/;
const LOG = /^nanobot\.(\d{4}-\d{2}-\d{2})\.log$/;

export async function purgeRecords(home: Home, reach: RecordReach): Promise<PurgedRecords> {
  const traces = (await namesIn(home.traces)).filter((name) => TRACE.test(name));
  const files = [
    `${home.metrics}.1`,
    home.metrics,
    ...traces.map((name) => join(home.traces, name)),
  ];
  let lines = 0;
  for (const path of files) lines += await purgeLines(path, (line) => isReached(line, reach));
  return { lines, logs: reach.chats === undefined ? await purgeLogs(home.logs, reach) : 0 };
}

/** Returns the number of removed lines; an empty file is removed. */
export async function purgeLines(
  path: string,
  isMeant: (line: string) => boolean,
): Promise<number> {
  const lines = ((await textIfThere(path)) ?? '').split('\n').filter((line) => line !== '');
  const kept = lines.filter((line) => !isMeant(line));
  if (kept.length === lines.length) return 0;
  if (kept.length === 0) await rm(path, { force: true });
  else await writeAtomic(path, `${kept.join('\n')}\n`, FILE_MODE);
  return lines.length - kept.length;
}

/** A damaged line goes with everything else. */
function isReached(line: string, { before, chats }: RecordReach): boolean {
  const { timestamp, at = timestamp } = fieldsOf(parseJson(line)) ?? {};
  const isOld = typeof at !== 'string' || !(Date.parse(at) >= before);
  return isOld && (chats === undefined || isLineOf(line, chats));
}

/** Of a conversation of these chats. */
export function isLineOf(line: string, chats: readonly string[]): boolean {
  const { session } = fieldsOf(parseJson(line)) ?? {};
  return typeof session === 'string' && isOfChats({ session: sessionKey(session) }, chats);
}

async function purgeLogs(folder: string, { before, isEverything }: RecordReach): Promise<number> {
  const names = (await namesIn(folder)).filter((name) => LOG.test(name)).toSorted();
  const newest = names.at(-1);
  let logs = 0;
  for (const name of names) {
    const isOver = Date.parse(LOG.exec(name)?.[1] ?? '') + DAY_MS <= before;
    if (name !== newest && (isOver || isEverything)) await rm(join(folder, name), { force: true });
    else if (isEverything) await truncate(join(folder, name));
    else continue;
    logs += 1;
  }
  return logs;
}

const namesIn = (folder: string) => readdir(folder).catch((): string[] => []);
