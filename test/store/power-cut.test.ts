// A power cut at any moment: of what a process wrote to its store the disk has what was synced, and
// of the rest any part. Whatever a promise was kept for is there when the file is opened again.
// The writes and syncs of the process are recorded by strace.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { campaign } from '../support/campaign.ts';
import { hasStrace, parseCalls, type SystemCall } from '../support/strace.ts';

const CHILD = fileURLToPath(new URL('power-cut-child.ts', import.meta.url));
const CALLS = 'pwrite64,ftruncate,fsync,fdatasync,write';
const FILES = ['state.db', 'state.db-wal'];
/** Cuts that are tried, besides those around every sync of the file and every new log. */
const SPREAD_CUTS = campaign({ short: 5, full: 60 });

const canTrace = await hasStrace();
if (!canTrace) {
  console.log('power cut test skipped: strace is not there or may not watch a process');
}

type Change =
  | { readonly kind: 'write'; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly size: number };

const fileOf = ({ args }: SystemCall) => basename(/^\d+<([^>]*)>/.exec(args)?.[1] ?? '');

const isSync = ({ name }: SystemCall) => name.endsWith('sync');

function changeOf({ name, args }: SystemCall): Change {
  if (name === 'ftruncate') return { kind: 'truncate', size: Number(/, (\d+)$/.exec(args)?.[1]) };
  const [, text = '', at] = /, "((?:\\x[0-9a-f]{2})*)", \d+, (\d+)$/.exec(args) ?? [];
  const bytes = Buffer.from(text.replaceAll('\\x', ''), 'hex');
  return { kind: 'write', at: Number(at), bytes };
}

function apply(content: Buffer, change: Change): Buffer {
  const size =
    change.kind === 'truncate'
      ? change.size
      : Math.max(content.length, change.at + change.bytes.length);
  const next = Buffer.alloc(size);
  content.copy(next);
  if (change.kind === 'write') change.bytes.copy(next, change.at);
  return next;
}

/** Which of the changes that were not synced reached the disk all the same. */
const LUCK: Readonly<Record<string, (place: number) => boolean>> = {
  none: () => false,
  all: () => true,
  'every other': (place) => place % 2 === 1,
  'the later half': (place) => (place * 7) % 5 > 2,
};

/** One file on a disk that is moved on through the record of calls. */
class RecordedFile {
  #content: Buffer = Buffer.alloc(0);
  #pending: { readonly change: Change; readonly end: number }[] = [];
  readonly #calls: readonly SystemCall[];
  #next = 0;

  /** A write counts from its beginning, a sync when it has ended. */
  constructor(calls: readonly SystemCall[], name: string) {
    const timeOf = (call: SystemCall) => (isSync(call) ? call.end : call.begin);
    this.#calls = calls
      .filter((call) => fileOf(call) === name)
      .toSorted((a, b) => timeOf(a) - timeOf(b));
  }

  moveTo(cut: number): void {
    for (; ; this.#next += 1) {
      const call = this.#calls[this.#next];
      if (call === undefined || (isSync(call) ? call.end : call.begin) >= cut) return;
      if (isSync(call)) this.#sync(call.begin);
      else this.#pending.push({ change: changeOf(call), end: call.end });
    }
  }

  /** As a power cut leaves it. */
  contentWith(isLucky: (place: number) => boolean): Buffer {
    return this.#pending
      .filter((_, place) => isLucky(place))
      .reduce((content, { change }) => apply(content, change), this.#content);
  }

  #sync(begin: number): void {
    for (const { change, end } of this.#pending) {
      if (end < begin) this.#content = apply(this.#content, change);
    }
    this.#pending = this.#pending.filter(({ end }) => end >= begin);
  }
}

async function record(path: string): Promise<readonly SystemCall[]> {
  const trace = `${path}.trace`;
  const options = ['-f', '-y', '-xx', '-s', '100000', '-e', `trace=${CALLS}`, '-o', trace];
  const child = spawn('strace', [...options, process.execPath, CHILD, path], { stdio: 'ignore' });
  await once(child, 'exit');
  // -xx writes the names of files in hexadecimal digits too.
  const text = (await readFile(trace, 'utf8')).replaceAll(/<((?:\\x[0-9a-f]{2})+)>/g, (_, hex) => {
    return `<${Buffer.from(hex.replaceAll('\\x', ''), 'hex').toString()}>`;
  });
  return parseCalls(text);
}

/** Places in the record, with the row that was reported there. */
function reports(calls: readonly SystemCall[]): readonly { row: string; begin: number }[] {
  return calls
    .filter(({ name, args }) => name === 'write' && args.startsWith('1<'))
    .flatMap(({ args, begin }) => {
      const said = Buffer.from(
        (/"(.*)"/.exec(args)?.[1] ?? '').replaceAll('\\x', ''),
        'hex',
      ).toString();
      const row = /^kept (\d+)\n$/.exec(said)?.[1];
      return row === undefined ? [] : [{ row, begin }];
    });
}

function cutsOf(calls: readonly SystemCall[], from: number): readonly number[] {
  const cuts = new Set<number>();
  for (const call of calls) {
    const isRenewal = call.name === 'ftruncate' || (isSync(call) && fileOf(call) === FILES[0]);
    if (!isRenewal || call.begin < from) continue;
    const { begin, end } = call;
    for (const near of [begin, end, end + 1, end + 2, end + 4]) cuts.add(near);
  }
  const last = calls.at(-1)?.end ?? 0;
  for (let n = 0; n <= SPREAD_CUTS; n += 1) {
    cuts.add(from + Math.round(((last + 1 - from) * n) / SPREAD_CUTS));
  }
  return [...cuts].toSorted((a, b) => a - b);
}

/** What is found when the file is opened again. */
function reopened(path: string) {
  const database = new DatabaseSync(path);
  const rows = database.prepare("SELECT key FROM key_value WHERE scope = 'rows'").all();
  const { integrity_check: health } = database.prepare('PRAGMA integrity_check').get() ?? {};
  database.close();
  return { found: new Set(rows.map(({ key }) => String(key))), health };
}

it.skipIf(!canTrace)('nothing that was reported as kept is lost by a power cut', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-power-'));
  const calls = await record(join(folder, 'state.db'));
  const kept = reports(calls);
  expect(kept.at(-1)?.row).toBe('0');
  const [first] = kept;
  const [file, log] = FILES.map((name) => new RecordedFile(calls, name));
  const image = join(folder, 'image');
  for (const cut of cutsOf(calls, first?.begin ?? 0)) {
    file?.moveTo(cut);
    log?.moveTo(cut);
    for (const [luck, isLucky] of Object.entries(LUCK)) {
      await writeFile(image, file?.contentWith(isLucky) ?? '');
      await writeFile(`${image}-wal`, log?.contentWith(isLucky) ?? '');
      const { found, health } = reopened(image);
      const missing = kept.filter(({ row, begin }) => begin < cut && !found.has(row));
      expect({ cut, luck, missing, health }).toEqual({ cut, luck, missing: [], health: 'ok' });
    }
  }
  await rm(folder, { recursive: true });
});
