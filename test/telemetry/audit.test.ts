// The audit file: whatever is done to it afterwards is found, and a kill in the middle is no alarm.

import { appendFile, mkdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AuditFile, verifyAudit } from '../../src/kernel/observe/audit.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMemoryStore } from '../support/memory-host.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

async function createAudit(maxBytes?: number) {
  const path = join(await temporaryFolder(), 'audit.jsonl');
  const state = createMemoryStore();
  const clock = createMovableClock();
  const size = maxBytes === undefined ? {} : { maxBytes };
  const write = async (...tools: readonly string[]) => {
    const audit = new AuditFile({ path, state, clock, log: silentLogger, ...size });
    for (const tool of tools) audit.note({ kind: 'tool_call', fields: { tool, isAllowed: true } });
    await audit[Symbol.asyncDispose]();
  };
  const lines = async () =>
    (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '');
  const rewrite = async (changed: readonly string[]) =>
    writeFile(path, changed.map((line) => `${line}\n`).join(''));
  const verify = () => verifyAudit(path, state);
  return { path, state, write, lines, rewrite, verify };
}

describe('the audit file', () => {
  it('goes on where an earlier process ended, over several files', async () => {
    const { write, verify, path } = await createAudit(600);
    expect(await verify()).toMatchObject({ kind: 'intact', entries: 0 });
    await write('exec', 'send_email');
    await write('exec');
    await write('cron', 'exec');
    expect(await verify()).toMatchObject({ kind: 'intact', entries: 5 });
    expect(await readFile(path.replace('.jsonl', '.0001.jsonl'), 'utf8')).toContain('send_email');
  });

  const FIELDS: readonly (readonly [string, RegExp, string])[] = [
    ['tool', /"tool":"exec"/, '"tool":"time"'],
    ['permission', /"isAllowed":true/, '"isAllowed":false'],
    ['kind', /"kind":"tool_call"/, '"kind":"person"'],
    ['time', /"at":"\d{4}/, '"at":"1999'],
    ['place', /"seq":2/, '"seq":7'],
    ['predecessor', /"prev":"[0-9a-f]{4}/, '"prev":"abcd'],
    ['own hash', /"hash":"[0-9a-f]{4}/, '"hash":"abcd'],
  ];
  it.each(FIELDS)('shows that the %s of an entry was changed', async (_field, pattern, other) => {
    const { write, verify, lines, rewrite } = await createAudit();
    await write('time', 'exec', 'cron');
    const all = await lines();
    await rewrite(all.map((line, index) => (index === 1 ? line.replace(pattern, other) : line)));
    expect(await verify()).toMatchObject({ kind: 'broken', line: 2 });
  });

  it('shows that entries were taken out, put in or changed places', async () => {
    const { write, verify, lines, rewrite } = await createAudit();
    await write('a', 'b', 'c', 'd');
    const [a = '', b = '', c = '', d = ''] = await lines();
    for (const changed of [
      [a, c, d],
      [b, c, d],
      [a, b, b, c, d],
      [a, c, b, d],
      [a, b, 'x', c, d],
      [a, b, c, d, 'x'],
      [a, b, c, d, '{"seq":5,"at":"20'],
      [a, b, '', c, d],
      [a, b, c, d, ''],
      [a, b, ` ${c}`, d],
      [a, b, c.replace('{"seq":', '{"seq": '), d],
      [a, b, `${c}\r`, d],
    ]) {
      await rewrite(changed);
      expect((await verify()).kind).toBe('broken');
    }
    await rewrite([a, b, c, d]);
    expect(await verify()).toMatchObject({ kind: 'intact', entries: 4 });
  });

  it('shows that its end was cut off or the whole is gone, also after more was written', async () => {
    const { write, verify, lines, rewrite, path } = await createAudit();
    await write('a', 'b', 'c');
    await rewrite((await lines()).slice(0, 2));
    expect(await verify()).toMatchObject({ kind: 'broken', problem: /missing/ });
    await write('d');
    expect(await verify()).toMatchObject({ kind: 'broken', line: 3 });
    await rm(path);
    expect(await verify()).toMatchObject({ kind: 'broken', problem: /4 entries/ });
  });

  it('loses nothing where an older file was moved away or its end is not readable', async () => {
    const { write, verify, lines, path, state } = await createAudit(1);
    for (const tool of ['a', 'b', 'c', 'd']) await write(tool);
    const third = path.replace('.jsonl', '.0003.jsonl');
    const before = await readFile(third, 'utf8');
    await rm(path.replace('.jsonl', '.0001.jsonl'));
    await write('e');
    expect(await readFile(third, 'utf8')).toBe(before);
    await state.set('head', '{"seq":');
    expect(await verify()).toMatchObject({ kind: 'broken' });
    await write('f');
    expect((await lines()).at(-1)).toContain('"seq":6');
  });

  it('takes a kill in the middle for what it is', async () => {
    const { write, verify, lines, path, state } = await createAudit();
    await write('a');
    const head = (await state.get('head')) ?? '';
    await write('b', 'c');
    // Killed after the file was written and before the store heard of it.
    await state.set('head', head);
    expect(await verify()).toMatchObject({ kind: 'intact', entries: 3 });
    await write('d');
    expect(await verify()).toMatchObject({ kind: 'intact', entries: 4 });
    // Killed within a line.
    await appendFile(path, '{"seq":5,"at":"20');
    expect(await verify()).toMatchObject({ kind: 'intact', entries: 4 });
    await write('e');
    expect(await verify()).toMatchObject({ kind: 'intact', entries: 5 });
    expect(await lines()).toHaveLength(5);
    // Half of one that was counted.
    await truncate(path, (await readFile(path)).length - 9);
    expect((await verify()).kind).toBe('broken');
    await truncate(path, 0);
    expect((await verify()).kind).toBe('broken');
  });

  it('holds what was begun before it is done, without the disk, and shows what a kill cut off', async () => {
    const { path, state, lines, verify } = await createAudit();
    const audit = new AuditFile({ path, state, clock: createMovableClock(), log: silentLogger });
    const entry = (call: string, status: string) =>
      ({ kind: 'tool_call', fields: { tool: 'exec', call, status } }) as const;
    await audit.enter(entry('1', 'begun'));
    expect(await lines()).toHaveLength(1);
    expect(await state.get('head')).toBeUndefined();
    audit.note(entry('1', 'ok'));
    await audit.enter(entry('2', 'begun'));
    // Killed here: another process goes on behind it.
    expect(await verify()).toMatchObject({ entries: 3, unfinished: [{ fields: { call: '2' } }] });
    const next = new AuditFile({ path, state, clock: createMovableClock(), log: silentLogger });
    next.note(entry('3', 'failed'));
    await next[Symbol.asyncDispose]();
    const verdict = await verify();
    expect(verdict).toMatchObject({ kind: 'intact', entries: 4, unfinished: [{ seq: 3 }] });
  });

  it('does not hold a call up while nothing can be written', async () => {
    const path = join(await temporaryFolder(), 'audit.jsonl');
    const clock = createMovableClock();
    const state = createMemoryStore();
    const audit = new AuditFile({ path, state, clock, log: silentLogger });
    await mkdir(path);
    await audit.enter({ kind: 'tool_call', fields: { call: '1', status: 'begun' } });
    await audit.enter({ kind: 'tool_call', fields: { call: '2', status: 'begun' } });
    await rm(path, { recursive: true });
    await audit[Symbol.asyncDispose]();
    expect(await verifyAudit(path, state)).toMatchObject({ entries: 2 });
  });

  it('holds a call before it begins as soon as it can be written again, with all that waited', async () => {
    const path = join(await temporaryFolder(), 'audit.jsonl');
    const clock = createMovableClock();
    const state = createMemoryStore();
    await using audit = new AuditFile({ path, state, clock, log: silentLogger });
    await mkdir(path);
    await audit.enter({ kind: 'tool_call', fields: { call: '1', status: 'begun' } });
    audit.note({ kind: 'tool_call', fields: { call: '1', status: 'ok' } });
    await rm(path, { recursive: true });
    await audit.enter({ kind: 'tool_call', fields: { call: '2', status: 'begun' } });
    // As a kill would leave it: no time went by, and nothing was closed.
    expect(await verifyAudit(path, state)).toMatchObject({ kind: 'intact', entries: 3 });
    expect(clock.pending).toBe(0);
  });

  it('keeps what cannot be written and writes it once it can, each entry once', async () => {
    const path = join(await temporaryFolder(), 'audit.jsonl');
    const store = createMemoryStore();
    let isStoreDown = false;
    const state: typeof store = {
      ...store,
      async set(key, value) {
        if (isStoreDown) throw new Error('down');
        await store.set(key, value);
      },
    };
    const clock = createMovableClock();
    const audit = new AuditFile({ path, state, clock, log: silentLogger });
    const note = (tool: string) => audit.note({ kind: 'tool_call', fields: { tool } });
    await mkdir(path);
    note('exec');
    await expect.poll(() => clock.pending).toBe(1);
    note('cron');
    await rm(path, { recursive: true });
    isStoreDown = true;
    await clock.advance(10_000);
    await expect.poll(() => clock.pending).toBe(1);
    note('send_email');
    isStoreDown = false;
    await audit[Symbol.asyncDispose]();
    expect(await verifyAudit(path, state)).toMatchObject({ kind: 'intact', entries: 3 });
    const tools = (await readFile(path, 'utf8')).match(/"tool":"\w+"/g);
    expect(tools).toEqual(['"tool":"exec"', '"tool":"cron"', '"tool":"send_email"']);
    expect(clock.pending).toBe(0);
  });
});
