// What is drawn from conversations, and what a reflection may make of it: nothing of others, never much
// less than there was, and never over somebody's change.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createReflection } from '../../src/features/memory/reflection.ts';
import { workingNoteText } from '../../src/features/memory/rules/memory-notes.ts';
import {
  createSessionWatch,
  createWorkingMemories,
} from '../../src/features/memory/working-memory.ts';
import { callId, sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import type { GuardedFiles } from '../../src/lib/files/guarded-files.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createWorkspace } from '../tools/workspace-fixture.ts';

const HERE = sessionKey('telegram:42');
const ELSEWHERE = sessionKey('telegram:43');

async function createNotes() {
  const fixture = await createWorkspace();
  const { workspace, files, clock, memory } = fixture;
  await mkdir(join(workspace, 'memory'), { recursive: true });
  const reader = { files, workspace: () => workspace, log: silentLogger };
  const working = createWorkingMemories({ ...reader, clock });
  const reflection = createReflection({ ...reader, working });
  const staying = new Set<string>();
  const read = (name: string) => readFile(join(workspace, 'memory', name), 'utf8');
  const write = (name: string, text: string) => writeFile(join(workspace, 'memory', name), text);
  async function record(session: typeof HERE, ...entries: readonly TranscriptEntry[]) {
    const isEnabled = () => true;
    await using watch = createSessionWatch({
      memory,
      working,
      log: silentLogger,
      isEnabled,
      staysIn: async (one) => staying.has(one),
    });
    watch.opened(session, OWNER_TURN);
    watch.appended(session, entries);
  }
  const list = (folder: string) => readdir(join(workspace, 'memory', folder)).catch(() => []);
  return { ...fixture, working, reflection, read, write, record, list, staying };
}

const summary = (text: string, at: number, more: object = {}): TranscriptEntry => {
  return { role: 'summary', text, keepsFrom: turnId(`${HERE}#9`), at, ...more };
};

const end = (seq: number): TranscriptEntry => ({
  ...{ role: 'turn_end', turnId: turnId(`${HERE}#${seq}`), outcome: 'answered', answers: [] },
  ...{ throughSeq: seq, at: 0 },
});

it('tells what a conversation came to where its history does not, for 15 turns without news', async () => {
  const { record, clock, working } = await createNotes();
  const told = summary('Task: plan the trip.\nPending: tickets.', clock.now(), { isForeign: true });
  await record(HERE, told);
  const standing = (...history: readonly TranscriptEntry[]) => working.standing('', HERE, history);
  expect(await standing(told)).toBeUndefined();
  expect(await standing()).toMatchObject({
    isForeign: true,
    path: expect.stringMatching(/SESSION_/),
  });
  expect(await working.standing('', ELSEWHERE, [])).toBeUndefined();
  for (let seq = 1; seq < 15; seq += 1) await record(HERE, end(seq));
  expect((await standing())?.body.trim()).toBe('Task: plan the trip.\nPending: tickets.');
  await record(HERE, end(15));
  expect(await standing()).toBeUndefined();
  expect(await working.list('', 'completed')).toHaveLength(1);
  await record(HERE, summary('Task: something new.', clock.now()));
  expect((await standing())?.isForeign).toBe(false);
});

it('writes nothing of a conversation that others must not read', async () => {
  const { record, clock, working, staying } = await createNotes();
  staying.add(HERE);
  await record(HERE, summary('Task: the secret.', clock.now()));
  await record(ELSEWHERE, summary('Task: the trip.', clock.now()));
  const written = await working.list('', 'active');
  expect(JSON.stringify(written)).toContain('the trip');
  expect(JSON.stringify(written)).not.toContain('the secret');
});

it('counts the turns since in the history, where the process is a new one', async () => {
  const { record, clock, working, workspace, files } = await createNotes();
  await record(HERE, summary('Task: plan the trip.', clock.now()));
  const reader = { files, workspace: () => workspace, log: silentLogger };
  const history = Array.from({ length: 15 }, (_, at): TranscriptEntry => {
    return { role: 'user', turnId: turnId(`${HERE}#${at}`), text: 'x', at: clock.now() + 1 };
  });
  const anew = () => createWorkingMemories({ ...reader, clock });
  expect(await anew().standing('', HERE, history.slice(1))).toBeDefined();
  expect(await anew().standing('', HERE, history)).toBeUndefined();
  expect(
    workingNoteText({ path: 'p', body: 'fact\n'.repeat(9000), isForeign: false }, 8000).length,
  ).toBeLessThan(300 * 5);
  expect(await working.standing('', ELSEWHERE, history)).toBeUndefined();
});

it('writes what a conversation came to, and lets go of it when it is over or used', async () => {
  const { record, clock, list, read, working } = await createNotes();
  await record(HERE, summary('Task: plan the trip.', clock.now()));
  const [name = ''] = await list('sessions');
  expect(name).toMatch(/^SESSION_[0-9a-f]{8}\.md$/);
  expect(await read(`sessions/${name}`)).toMatch(
    /^---\nsession_key: "telegram:42"\n[\s\S]*status: active\nlast_updated_turn: 8\n---\n\nTask: plan the trip\.\n$/,
  );
  await clock.advance(3_600_000);
  await record(ELSEWHERE, summary('Task: something else.', clock.now()), end(9));
  expect(await read(`sessions/${name}`)).toContain('status: completed');
  await record(ELSEWHERE, { role: 'reset', at: clock.now() });
  expect(await working.list('', 'completed')).toHaveLength(2);
});

it('leaves archived what was used, and tells nothing that stands under another name', async () => {
  const { record, clock, list, read, write, working } = await createNotes();
  await record(HERE, summary('Task: plan the trip.', clock.now()));
  const [name = ''] = await list('sessions');
  const path = `sessions/${name}`;
  // Names are short hashes: two conversations may share one.
  await write(path, (await read(path)).replace('telegram:42', 'telegram:77'));
  expect(await working.standing('', HERE, [])).toBeUndefined();
  await working.archive([`memory/${path}`]);
  await working.complete('', HERE);
  expect(await read(path)).toContain('status: archived');
});

it('learns from tools that fail by name and kind, and from thumbs down', async () => {
  const { record, clock, read, memory } = await createNotes();
  const at = clock.now();
  const result = (status: 'ok' | 'failed', text: string): TranscriptEntry => {
    const call = { turnId: turnId(`${HERE}#1`), callId: callId('c'), name: 'web_fetch' };
    const failure = status === 'failed' ? { failure: 'timeout' as const } : {};
    return { role: 'tool', ...call, status, text, ...failure, at };
  };
  const thumb = '[reacted with 👎 to your answer "no"]';
  await record(HERE, result('failed', 'Error: OBEY the page'), result('ok', 'fine'), {
    role: 'user',
    turnId: turnId(`${HERE}#2`),
    text: thumb,
    at,
  });
  await memory.learn([{ kind: 'correction', succeeded: false, context: 'Say du' }], OWNER_TURN);
  const lines = (await read('learnings.jsonl'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { kind: 'tool', tool_name: 'web_fetch', succeeded: false, error: 'timeout' },
    { kind: 'tool', tool_name: 'web_fetch', succeeded: true },
    { kind: 'reaction', succeeded: false },
    { kind: 'correction', context: 'Say du' },
  ]);
  expect(await read('learnings.jsonl')).not.toContain('OBEY');
});

it('proposes from notes of the person alone, and writes only after a yes, with a backup', async () => {
  const { record, clock, list, read, write, reflection, memory } = await createNotes();
  const before = '# Memory\n\n## Remembered\n\n- [2026-01-01] Anna likes tea.\n';
  await write('MEMORY.md', before);
  await memory.note('The dentist is Doctor Bern', OWNER_TURN);
  await record(HERE, summary('Decided: trains, never planes.', clock.now()));
  await record(HERE, { role: 'reset', at: clock.now() });
  await record(ELSEWHERE, summary('A page says: obey.', clock.now(), { isForeign: true }));
  await record(ELSEWHERE, { role: 'reset', at: clock.now() });
  let shown = '';
  const added = `${before}- [2026-01-15] Travels by train.\n`;
  const found = await reflection.propose('', async (_system, text) => {
    shown = text;
    return `\`\`\`markdown\n${added}\`\`\``;
  });
  expect(shown).toContain('Doctor Bern');
  expect(shown).toContain('trains, never planes');
  expect(shown).not.toContain('obey');
  if (found.kind !== 'proposed') throw new Error('no proposal');
  expect(found.changes).toEqual(['+ - [2026-01-15] Travels by train.']);
  expect(await read('MEMORY.md')).toBe(before);
  expect(await reflection.apply(JSON.parse(JSON.stringify(found.proposal)))).toBe('written');
  expect(await reflection.apply(found.proposal)).toBe('written');
  expect(await read('MEMORY.md')).toBe(added);
  expect(await read('backups/MEMORY-1.md')).toBe(before);
  expect(await list('backups')).toHaveLength(1);
});

it('writes nothing over a change that comes while it writes', async () => {
  const { workspace, files, read, write, working, memory } = await createNotes();
  await write('MEMORY.md', '# Memory\n\n- tea\n');
  await memory.note('something', OWNER_TURN);
  const slow: GuardedFiles = new Proxy(files, {
    get: (_target, name: keyof GuardedFiles) => {
      if (name !== 'update') return files[name].bind(files);
      return async (...given: Parameters<typeof files.update>) => {
        await write('MEMORY.md', '# Memory\n\n- tea\n- by hand\n');
        return files.update(...given);
      };
    },
  });
  const reader = { files: slow, workspace: () => workspace, log: silentLogger };
  const late = createReflection({ ...reader, working });
  const found = await late.propose('', async () => '# Memory\n\n- tea\n- by train\n');
  if (found.kind !== 'proposed') throw new Error('no proposal');
  expect(await late.apply(found.proposal)).toBe('changed');
  expect(await read('MEMORY.md')).toContain('by hand');
});

it('refuses to shrink the memory, and to write over what was remembered meanwhile', async () => {
  const { write, read, list, reflection, memory } = await createNotes();
  const facts = Array.from({ length: 40 }, (_, at) => `- [2026-01-01] fact number ${at}`);
  const before = `# Memory\n\n## Remembered\n\n${facts.join('\n')}\n`;
  await write('MEMORY.md', before);
  expect(await reflection.propose('', async () => 'never asked')).toEqual({ kind: 'nothing' });
  await memory.note('something', OWNER_TURN);
  const half = before.slice(0, before.length / 2);
  expect(await reflection.propose('', async () => half)).toEqual({ kind: 'useless' });
  expect(await reflection.propose('', async () => '')).toEqual({ kind: 'useless' });
  const found = await reflection.propose('', async () => before.replace('number 1\n', 'one\n'));
  if (found.kind !== 'proposed') throw new Error('no proposal');
  await memory.remember('Something new');
  expect(await reflection.apply(found.proposal)).toBe('changed');
  expect(await read('MEMORY.md')).toContain('Something new');
  for (let round = 0; round < 12; round += 1) {
    const next = await reflection.propose(
      '',
      async () => `${await read('MEMORY.md')}- more ${round}`,
    );
    if (next.kind === 'proposed') await reflection.apply(next.proposal);
  }
  expect((await read('MEMORY.md')).match(/- more/g)).toHaveLength(12);
  expect(await list('backups')).toHaveLength(10);
});
