// Persons over a store that two processes share, as the gateway and a command beside it do.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, messageId } from '../../src/kernel/message/ids.ts';
import type { InboundMessage } from '../../src/kernel/message/message.ts';
import { createPeople, type People } from '../../src/kernel/people/people.ts';
import { createRows } from '../../src/kernel/rows.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { person } from './people-rig.ts';

const CHANGES = 20;
const clock = createMovableClock();
const stores: EmbeddedStore[] = [];
let folder: string;

async function openPeople(): Promise<People> {
  const path = join(folder, 'state.db');
  const store = await openEmbeddedStore({ path, clock, log: silentLogger });
  stores.push(store);
  return createPeople({
    ...{ rows: createRows(store), state: store.scope('people'), clock, randomBytes },
    ...{ localChannels: [], release: async () => undefined, settled: async () => false },
    policy: () => ({ allowFrom: [], owners: [], strangers: 'closed' }),
  });
}

function messageIn(chat: string): InboundMessage {
  return {
    id: messageId(`chat:default:${chat}`),
    chat: { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId(chat) },
    sender: person('7'),
    ...{ addressing: 'direct', text: 'hello', sentAt: 1, receivedAt: 1 },
  };
}

beforeEach(async () => {
  folder = await temporaryFolder();
});

afterEach(async () => {
  for (const store of stores.splice(0)) await store[Symbol.asyncDispose]();
});

it('keeps both changes of a person that two processes make at once', async () => {
  const [gateway, command] = [await openPeople(), await openPeople()];
  await gateway.persons.seen(messageIn('1'));
  const [{ id } = { id: undefined }] = await command.persons.list();
  if (id === undefined) throw new Error('nobody is known');
  const added = (of: string) => async (_: unknown, n: number) => {
    const people = of === 'gateway' ? gateway : command;
    await people.persons.change(id, (record) => ({ ...record, name: `${record.name} ${of}${n}` }));
  };
  const turns = Array.from({ length: CHANGES });
  await Promise.all([...turns.map(added('gateway')), ...turns.map(added('command'))]);
  for (const { persons } of [gateway, command]) {
    const names = (await persons.get(id))?.name.split(' ') ?? [];
    for (let n = 0; n < CHANGES; n += 1) {
      expect(names).toContain(`gateway${n}`);
      expect(names).toContain(`command${n}`);
    }
  }
});

it('keeps a limit that a command sets while the person writes in another chat', async () => {
  const [gateway, command] = [await openPeople(), await openPeople()];
  await gateway.persons.seen(messageIn('1'));
  const [{ id } = { id: undefined }] = await command.persons.list();
  if (id === undefined) throw new Error('nobody is known');
  await Promise.all([
    command.persons.change(id, (record) => ({ ...record, limits: { perDay: 5 } })),
    gateway.persons.seen(messageIn('2')),
  ]);
  expect(await gateway.persons.get(id)).toMatchObject({
    limits: { perDay: 5 },
    doors: [{ chat: { chat: '2' } }],
  });
});

it('does not bring a person back who was forgotten beside the gateway', async () => {
  const [gateway, command] = [await openPeople(), await openPeople()];
  await gateway.persons.seen(messageIn('1'));
  const [{ id } = { id: undefined }] = await command.persons.list();
  if (id === undefined) throw new Error('nobody is known');
  expect(await command.persons.forget(id)).toBe(true);
  expect(await gateway.persons.get(id)).toBeUndefined();
  expect(await gateway.persons.change(id, (record) => record)).toBeUndefined();
  expect(await command.persons.list()).toEqual([]);
});
