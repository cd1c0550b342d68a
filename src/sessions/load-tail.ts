// Brings the tail of a session into memory: finds the newest file, mends it where needed and reads
// it. The cost is that of one file of bounded size, whatever the age of the session.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { tokensOfBytes, turnOf } from '../core/session/carry.ts';
import { formatName, parseName, type SessionFileName } from '../core/session/name.ts';
import type { TranscriptEntry } from '../core/transcript.ts';
import type { Logger } from '../lib/logger.ts';
import { orUndefined } from './file-errors.ts';
import type { NewestIndex } from './newest-index.ts';
import { repairFile } from './repair.ts';
import { type FileScan, isUnbegun, scanFile } from './scan-file.ts';
import { SessionTail, type TurnRecord } from './tail.ts';

export type TailSource = {
  readonly folder: string;
  readonly index: NewestIndex;
  readonly log: Logger;
};

const NOTHING = { end: undefined, carried: [], own: [], turnBefore: undefined };

export async function loadTail(
  source: TailSource,
  stem: string,
  today: string,
): Promise<SessionTail> {
  let name = await source.index.find(stem, today);
  while (name !== undefined) {
    const path = join(source.folder, formatName(name));
    const scan = await scanFile(path);
    const { size, setAside } = await repairFile(path, scan);
    if (setAside > 0) source.log.warn('damaged lines set aside', { file: path, lines: setAside });
    if (!isUnbegun(scan)) return toTail(source.folder, name, scan, size);
    await rm(path);
    name = await source.index.rediscover(stem);
  }
  return new SessionTail(NOTHING);
}

async function toTail(
  folder: string,
  name: SessionFileName,
  scan: FileScan,
  size: number,
): Promise<SessionTail> {
  const grown = Math.max(0, size - scan.openingBytes);
  const growth = { bytes: grown, tokens: tokensOfBytes(grown) };
  const continues = scan.header?.continues;
  const isYoung = new Set(scan.own.map(turnOf)).size < 2;
  return new SessionTail({
    end: { name, size, growth },
    carried: scan.carried,
    own: scan.own,
    turnBefore:
      isYoung && continues !== undefined ? await lastTurnOf(folder, continues) : undefined,
  });
}

/** A retry after a crash may concern the turn that ended the file before. */
async function lastTurnOf(folder: string, fileName: string): Promise<TurnRecord | undefined> {
  if (parseName(fileName) === undefined) return undefined;
  const scan = await scanFile(join(folder, fileName)).catch(orUndefined('ENOENT'));
  const own: readonly TranscriptEntry[] = scan?.own ?? [];
  const id = own.map(turnOf).findLast((turn) => turn !== undefined);
  if (id === undefined) return undefined;
  return { id, entries: own.filter((entry) => turnOf(entry) === id) };
}
