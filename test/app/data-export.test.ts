// Handing out all that is kept of a person: a block at a time however much it is, into the chat or, where
// that carries no such file, into the notes; and gone again when something is to be forgotten.

import { appendFile, mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createDataExport } from '../../src/features/memory/data-export.ts';
import {
  conversationsData,
  createHandedOut,
  notesData,
} from '../../src/features/memory/personal-data.ts';
import { sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { type ExportFormat, exported, type PersonalData } from '../../src/kernel/personal-data.ts';
import { encodeEntry, encodeHeader } from '../../src/kernel/sessions/rules/file.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { messageOf } from '../agent/agent-rig.ts';
import { createMemoryStore } from '../support/memory-host.ts';
import { createMemoryMedia } from '../support/memory-media.ts';
import { createWorkspace } from '../tools/workspace-fixture.ts';

const MEGABYTE = 1_000_000;

it('takes a block at a time, and leaves nothing behind that was to be forgotten', async () => {
  const { workspace, files, clock, memory } = await createWorkspace();
  const folder = join(workspace, '..', 'sessions');
  await mkdir(folder, { recursive: true });
  const key = sessionKey('terminal:local');
  const text = `secret word ${'and it rains '.repeat(80)}`;
  const lines = Array.from({ length: 4000 }, (_, at) =>
    encodeEntry({ role: 'user', turnId: turnId(`${key}#${at}`), text, at }),
  );
  const header = encodeHeader({ key, createdAt: 1, carried: 0 });
  await appendFile(
    join(folder, 'terminal%3Alocal_2026-01-01.jsonl'),
    `${[header, ...lines].join('\n')}\n`,
  );
  const reader = { files, workspace: () => workspace, log: silentLogger };
  const media = createMemoryMedia(clock);
  const sizes: number[] = [];
  async function* watched(content: AsyncIterable<Uint8Array>) {
    for await (const block of content) {
      sizes.push(block.length);
      yield block;
    }
  }
  const limit = { eachBytes: 50 * MEGABYTE };
  const handedOut = createHandedOut({ state: createMemoryStore(), media, reader });
  const sent: unknown[] = [];
  const sessionFiles = { folder, complete: async () => new Map() };
  const service = createDataExport({
    ...{ reader, memory, clock, handedOut, working: { of: async () => undefined } },
    sessionFiles,
    media: {
      put: (content, options) =>
        media.put(content instanceof Uint8Array ? content : watched(content), options),
    },
    bus: {
      async send(message) {
        sent.push(message);
        return 'queued';
      },
    },
    chatsOf: async () => [key],
    reachOf: async () => ({ notes: '', chats: [key] }),
    personalData: () => [notesData(reader), conversationsData(sessionFiles)],
    limit: () => limit,
  });
  const { message } = messageOf(1, '/export');
  const asking = { message, session: key, person: OWNER_TURN };
  expect(await service.handOut(asking, 'md')).toContain('is in the file (4');
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(4 * MEGABYTE);
  expect(Math.max(...sizes)).toBeLessThan(MEGABYTE / 5);
  expect(sent).toHaveLength(1);
  limit.eachBytes = MEGABYTE;
  const words = await service.handOut(asking, 'jsonl');
  const [, path = ''] = /`(memory\/sessions\/export-.*)`/.exec(words) ?? [];
  expect((await stat(join(workspace, path))).size).toBeGreaterThan(4 * MEGABYTE);
  await handedOut.forget('');
  expect(await readFile(join(workspace, path), 'utf8')).not.toContain('secret');
  const [file] = (sent as { attachments: { media: never }[] }[]).flatMap((one) => one.attachments);
  expect(file && (await media.read(file.media))).toBeUndefined();
});

it('exports what a feature finds, where the feature has no export of its own', async () => {
  const chat = sessionKey('terminal:local');
  const jobs: PersonalData = {
    find: async (chats, holds) =>
      chats.includes(chat) && holds('') ? [{ where: 'job a1', text: 'water the plants' }] : [],
  };
  const read = async (format: ExportFormat) =>
    Array.fromAsync(exported(jobs, { notes: '', chats: [chat] }, format));
  expect(await read('md')).toEqual(['# job a1\n\nwater the plants\n\n']);
  expect((await read('jsonl')).map((line) => JSON.parse(line))).toEqual([
    { type: 'kept', path: 'job a1', text: 'water the plants' },
  ]);
});
