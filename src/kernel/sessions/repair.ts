// Mends a session file after a crash or a bad disk, so that a damaged line never blocks a chat. What
// cannot be read is noted in `<file>.damaged`; only bytes behind the last newline are cut off.

import { appendFile, open, readFile } from 'node:fs/promises';
import { fieldsOf, parseJson } from '../../lib/json/json.ts';
import { orUndefined } from './file-errors.ts';
import type { FileLine, FileScan } from './read-lines.ts';

export type Repair = {
  /** Size of the file after the repair, bytes. */
  readonly size: number;
  /** Lines noted for the first time. */
  readonly setAside: number;
};

export const DAMAGED_SUFFIX = '.damaged';

export async function repairFile(path: string, scan: FileScan): Promise<Repair> {
  const { torn } = scan;
  const mustEndLine = torn !== undefined && (torn.isWhole || torn.line.oversized);
  const lost = torn === undefined || mustEndLine ? scan.damaged : [...scan.damaged, torn.line];
  const setAside = lost.length === 0 ? 0 : await noteDamage(path, lost);
  if (torn === undefined) return { size: scan.size, setAside };
  const end = torn.line.start + torn.line.length;
  if (mustEndLine) await appendSynced(path, '\n');
  else await truncateSynced(path, scan.size);
  return { size: mustEndLine ? end + 1 : scan.size, setAside };
}

async function noteDamage(path: string, lines: readonly FileLine[]): Promise<number> {
  const notePath = `${path}${DAMAGED_SUFFIX}`;
  const noted = (await readFile(notePath, 'utf8').catch(orUndefined('ENOENT'))) ?? '';
  const known = new Set(noted.split('\n'));
  const fresh = lines.map(describeLine).filter((note) => !known.has(note));
  if (fresh.length === 0) return 0;
  await appendSynced(notePath, `${fresh.join('\n')}\n`);
  return fresh.length;
}

/** What a noted line held. */
export function textOfDamage(note: string): string {
  const { text, base64 } = fieldsOf(parseJson(note)) ?? {};
  if (typeof text === 'string') return text;
  return typeof base64 === 'string' ? Buffer.from(base64, 'base64').toString('utf8') : note;
}

function appendSynced(path: string, text: string): Promise<void> {
  return appendFile(path, text, { mode: 0o600, flush: true });
}

async function truncateSynced(path: string, size: number): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.truncate(size);
    await file.datasync();
  } finally {
    await file.close();
  }
}

function describeLine(line: FileLine): string {
  const text = line.bytes.toString('utf8');
  const isText = Buffer.from(text, 'utf8').equals(line.bytes);
  return JSON.stringify({
    _type: line.terminated ? 'damaged_line' : 'torn_line',
    offset: line.start,
    bytes: line.length,
    ...(isText ? { text } : { base64: line.bytes.toString('base64') }),
  });
}
