// A damaged state.db is rebuilt from what can be read of it, the snapshots and the conversations:
// nothing is answered, sent or known twice, and what is lost is named.

import { existsSync, statSync } from 'node:fs';
import {
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { copyDatabase, snapshotsOf, takeSnapshot } from '../../src/kernel/bus/store/snapshot.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { openGatewayStore } from '../../src/kernel/home-state.ts';
import { type SessionKey, turnIdOf } from '../../src/kernel/message/ids.ts';
import { encodeEntry, encodeHeader } from '../../src/kernel/sessions/rules/file.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { outbound, queued } from '../contract/bus-bench.ts';
import { campaign } from '../support/campaign.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const LIMITS = { maxPendingPerChat: 10_000, maxPending: 100_000 };
const NO_CURSOR = { cursor: undefined, limits: LIMITS };
const PAGE_BYTES = 4096;
const options = { clock: systemClock, log: silentLogger };
const NEVER = new AbortController().signal;

let folder = '';
const homeAt = () => homeOf({ NANOBOT_HOME: folder });
const path = () => homeAt().state;

beforeEach(async () => {
  folder = await temporaryFolder();
  await mkdir(homeAt().sessions);
});
const opened = () => openEmbeddedStore({ path: path(), ...options });
const recovered = (onDamage: 'recover' | 'stop' = 'recover') =>
  openGatewayStore(homeAt(), options, { engine: 'sqlite', url: '', onDamage });

async function using<T>(store: Promise<EmbeddedStore>, work: (store: EmbeddedStore) => Promise<T>) {
  const it = await store;
  try {
    return await work(it);
  } finally {
    await it[Symbol.asyncDispose]();
  }
}

const snapshot = (store: EmbeddedStore) =>
  takeSnapshot({ path: path(), store, ...options, onDamage: () => undefined }, NEVER);

/** Messages with some text, so that each table has many pages. */
async function fill(store: EmbeddedStore, chats: number, from = 0): Promise<void> {
  const writes = Array.from({ length: chats }, (_, index) => {
    const chat = from + index;
    return [
      store.accept([queued(`c${chat}`, `m${chat}`)], NO_CURSOR),
      store.queue(outbound(`c${chat}`, `a${chat}`)),
      store.scope('rows').set(`row ${String(chat).padStart(5, '0')}`, 'x'.repeat(500)),
    ];
  });
  await Promise.all(writes.flat());
}

/** Ends the waiting turns of all chats in the store, and in their session files, as the gateway does. */
async function answerAll(store: EmbeddedStore): Promise<readonly SessionKey[]> {
  const answered: SessionKey[] = [];
  for (;;) {
    const { claimed } = await store.claimTurns(() => 50);
    if (claimed.length === 0) return answered;
    for (const turn of claimed) {
      const { session, firstSeq } = turn;
      const turnId = turnIdOf(session, firstSeq);
      const [{ message }] = turn.messages;
      const lines = [
        encodeHeader({ key: session, createdAt: 1, carried: 0 }),
        encodeEntry({
          role: 'user',
          turnId,
          messageId: message.id,
          seq: firstSeq,
          text: 'q',
          at: Date.now(),
        }),
        encodeEntry({
          ...{ role: 'turn_end', turnId, outcome: 'answered', answers: ['a'] },
          ...{ throughSeq: firstSeq, at: Date.now() },
        }),
      ];
      const file = join(homeAt().sessions, `${encodeURIComponent(session)}_2026-01-02.jsonl`);
      await writeFile(file, `${lines.join('\n')}\n`);
      await store.endTurn(turn, { kind: 'done', throughSeq: firstSeq, outbound: [] });
      answered.push(session);
    }
  }
}

async function overwrite(page: number, pages = 1): Promise<void> {
  const file = await open(path(), 'r+');
  await file.write(
    Buffer.alloc(PAGE_BYTES * pages, 0x55),
    0,
    PAGE_BYTES * pages,
    page * PAGE_BYTES,
  );
  await file.close();
}
const pageCount = () => Math.floor(statSync(path()).size / PAGE_BYTES);

async function reportText(): Promise<string> {
  const names = await readdir(folder);
  const report = names.find(
    (name) => name.startsWith('state.db.damaged-') && name.endsWith('.txt'),
  );
  return report === undefined ? '' : readFile(join(folder, report), 'utf8');
}

describe('a snapshot', () => {
  it('has everything that was committed, and one page of damage keeps the earlier one', async () => {
    await using store = await opened();
    await fill(store, 50);
    await snapshot(store);
    const [newest = '', older = ''] = snapshotsOf(path());
    expect(existsSync(older)).toBe(false);
    await using copy = await openEmbeddedStore({ path: newest, ...options });
    expect(await copy.stats()).toMatchObject({ pending: 50, outboundQueued: 50 });
    await store.scope('rows').set('later', '1');
    await snapshot(store);
    expect(existsSync(older)).toBe(true);
    await store.scrub();
    expect(existsSync(newest) || existsSync(older)).toBe(false);
  });

  it('of a damaged file replaces none, and the next start checks the file', async () => {
    await using(opened(), async (store) => {
      await fill(store, 200);
      await snapshot(store);
    });
    await overwrite(Math.floor(pageCount() / 2));
    let damage = 0;
    const copy = join(folder, 'copy');
    await using(opened(), async (store) => {
      expect(await copyDatabase(path(), copy)).toBe('damaged');
      await takeSnapshot({ path: path(), store, ...options, onDamage: () => (damage += 1) }, NEVER);
    });
    expect(damage).toBe(1);
    expect(existsSync(`${path()}.check`)).toBe(true);
    await using(recovered(), async (store) => {
      expect(await store.stats()).toMatchObject({ pending: 200 });
    });
    expect(existsSync(`${path()}.check`)).toBe(false);
  });
});

describe('a damaged store', () => {
  it('with a bad page and a current snapshot loses nothing', async () => {
    await using(opened(), async (store) => {
      await fill(store, 300);
      await snapshot(store);
    });
    await overwrite(Math.floor(pageCount() / 2), 3);
    await using(recovered(), async (store) => {
      expect(await store.stats()).toMatchObject({ pending: 300 });
      expect((await store.scope('rows').list('')).length).toBe(300);
      const { outboundQueued, unknown } = await store.stats();
      expect(outboundQueued + unknown).toBe(300);
    });
    expect(
      (await readdir(folder)).filter((name) => name.startsWith('state.db.damaged-')),
    ).toHaveLength(2);
  });

  it('without a snapshot loses the rows of the page and keeps those behind it', async () => {
    await using(opened(), (store) => fill(store, 300));
    await overwrite(Math.floor(pageCount() / 2));
    await using(recovered(), async (store) => {
      const { pending, outboundQueued } = await store.stats();
      const rows = await store.scope('rows').list('');
      expect(pending + outboundQueued + rows.length).toBeGreaterThan(840);
      expect(pending + outboundQueued + rows.length).toBeLessThan(900);
    });
    expect(await reportText()).toContain('There was no snapshot.');
  });

  it.each([
    ['a damaged header', () => overwrite(0)],
    ['half of its length', () => truncate(path(), Math.floor(pageCount() / 2) * PAGE_BYTES)],
    ['no bytes', () => truncate(path(), 0)],
    [
      'something else in it',
      () => writeFile(path(), 'not a database, but a note of some length\n'.repeat(500)),
    ],
  ])('with %s answers nothing twice that was answered since the snapshot', async (_, damage) => {
    const answered = await using(opened(), async (store) => {
      await fill(store, 100);
      await snapshot(store);
      const done = await answerAll(store);
      await fill(store, 20, 100);
      return done;
    });
    expect(answered).toHaveLength(100);
    await damage();
    await using(recovered(), async (store) => {
      const { claimed } = await store.claimTurns(() => 1000);
      expect(claimed.filter(({ session }) => answered.includes(session))).toEqual([]);
      const again = await store.accept([queued('c7', 'm7')], NO_CURSOR);
      expect(again).toEqual(['duplicate']);
      await store.accept([queued('c7', 'new')], NO_CURSOR);
      const [turn] = (await store.claimTurns(() => 1)).claimed;
      expect(turn?.firstSeq).toBeGreaterThan(1_000_000);
      // What stood in the snapshot may have been sent.
      const { outboundQueued, unknown } = await store.stats();
      expect(outboundQueued + unknown).toBeGreaterThanOrEqual(100);
      expect(outboundQueued).toBeLessThanOrEqual(120);
    });
    expect(await reportText()).toMatch(/rebuilt[\s\S]*snapshot of/);
  });

  it('answers what its snapshot holds open', async () => {
    await using(opened(), async (store) => {
      await fill(store, 10);
      await snapshot(store);
    });
    await truncate(path(), 0);
    await using(recovered(), async (store) => {
      expect((await store.claimTurns(() => 100)).claimed).toHaveLength(10);
    });
  });

  it('without snapshot and content knows again what the conversations name', async () => {
    await using(opened(), async (store) => {
      await fill(store, 5);
      await answerAll(store);
    });
    await truncate(path(), 0);
    await using(recovered(), async (store) => {
      expect(await store.accept([queued('c3', 'm3')], NO_CURSOR)).toEqual(['duplicate']);
    });
    expect(await reportText()).toContain('5 that only the conversations know');
  });

  it('is left as it is where the owner wants the start to stop', async () => {
    await using(opened(), (store) => fill(store, 100));
    await overwrite(Math.floor(pageCount() / 2));
    const before = await readFile(path());
    await expect(recovered('stop')).rejects.toMatchObject({ code: 'store_damaged' });
    expect((await readFile(path())).equals(before)).toBe(true);
  });

  it('does not bring back what was deleted since the snapshot', async () => {
    await using(opened(), async (store) => {
      await fill(store, 300);
      await snapshot(store);
      await store.scope('rows').delete('row 00000');
      await store.scope('rows').delete('row 00299');
    });
    await overwrite(Math.floor(pageCount() / 2));
    await using(recovered(), async (store) => {
      expect(await store.scope('rows').get('row 00000')).toBeUndefined();
      expect(await store.scope('rows').get('row 00299')).toBeUndefined();
    });
  });
});

describe('a store whose log is lost', () => {
  /** As a kill leaves it: the log is not in the file. */
  async function killed(work: (store: EmbeddedStore) => Promise<void>): Promise<void> {
    const store = await openEmbeddedStore({ path: path(), ...options, inBackground: true });
    await work(store);
    const copies = ['', '-wal'].map((suffix) => `${path()}${suffix}`);
    for (const file of copies) await writeFile(`${file}.kept`, await readFile(file));
    await store[Symbol.asyncDispose]();
    for (const file of copies) await rename(`${file}.kept`, file);
    const earlier = Date.now() / 1000 - 60;
    await utimes(path(), earlier, earlier);
    await writeFile(homeAt().runtime, '{}');
  }

  it.each([
    ['is missing', () => rm(`${path()}-wal`)],
    ['is garbage', () => writeFile(`${path()}-wal`, Buffer.alloc(50_000, 0x37))],
  ])(
    'because it %s does not answer again what the conversations show as answered',
    async (_, damage) => {
      await using(opened(), (store) => fill(store, 30));
      await killed(async (store) => {
        await answerAll(store);
        await fill(store, 5, 30);
        await answerAll(store);
      });
      await damage();
      await using(recovered(), async (store) => {
        expect((await store.claimTurns(() => 100)).claimed).toEqual([]);
        expect(await store.accept([queued('c32', 'm32')], NO_CURSOR)).toEqual(['duplicate']);
      });
      expect(await reportText()).toContain('is older than the conversations');
    },
  );

  it('after a kill with a whole log nothing is rebuilt', async () => {
    await using(opened(), (store) => fill(store, 30));
    await killed(async (store) => void (await answerAll(store)));
    await using(recovered(), async (store) => {
      expect((await store.claimTurns(() => 100)).claimed).toEqual([]);
    });
    expect(await reportText()).toBe('');
  });
});

it('is continued by the next start where it was killed between two renames', async () => {
  await using(opened(), (store) => fill(store, 20));
  await rename(path(), `${path()}.recovered-2026-01-02T03-04-05`);
  await writeFile(path(), 'damaged');
  await writeFile(`${path()}-wal`, 'its log');
  await using(recovered(), async (store) => {
    expect(await store.stats()).toMatchObject({ pending: 20 });
  });
  const aside = `${path()}.damaged-2026-01-02T03-04-05`;
  expect(await readFile(aside, 'utf8')).toBe('damaged');
  expect(await readFile(`${aside}-wal`, 'utf8')).toBe('its log');
});

it('with any damaged pages the store opens and answers nothing twice', async () => {
  const bytes = await using(opened(), async (store) => {
    await fill(store, 60);
    await snapshot(store);
    await answerAll(store);
    await fill(store, 20, 60);
    await store.queue(outbound('c1', 'x'));
  }).then(() => readFile(path()));
  const pages = bytes.length / PAGE_BYTES;
  const page = fc.record({
    at: fc.nat({ max: pages - 1 }),
    from: fc.nat({ max: PAGE_BYTES - 1 }),
    bytes: fc.uint8Array({ minLength: 1, maxLength: PAGE_BYTES }),
  });
  const damage = fc.record({
    pages: fc.array(page, { maxLength: 4 }),
    cut: fc.option(fc.nat({ max: bytes.length }), { nil: undefined, freq: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(damage, async (how) => {
      const broken = Buffer.from(bytes);
      for (const { at, from, bytes: junk } of how.pages) {
        const start = at * PAGE_BYTES + from;
        broken.set(junk.subarray(0, broken.length - start), start);
      }
      for (const name of await readdir(folder)) {
        if (/^state\.db(?:-|\.damaged|\.check)/.test(name)) await rm(join(folder, name));
      }
      await writeFile(path(), broken.subarray(0, how.cut ?? broken.length));
      await using(recovered(), async (store) => {
        const { claimed } = await store.claimTurns(() => 1000);
        const numbers = claimed.flatMap(({ messages }) =>
          messages.map(({ message }) => Number(message.id.split(':m')[1])),
        );
        const twice = numbers.filter((number) => number < 60);
        expect(twice).toEqual([]);
      });
    }),
    { numRuns: campaign({ short: 15, full: 2000 }) },
  );
});
