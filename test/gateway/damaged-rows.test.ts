// Rows that cannot be read keep nobody's messages from coming in, and let nobody in.

import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { createOutages } from '../../src/features/health/index.ts';
import { openBridgeRows } from '../../src/features/mail-bridge/bridge-summaries.ts';
import { openJobRows } from '../../src/features/schedule/job-rows.ts';
import { storedDays } from '../../src/features/spending/spending-day.ts';
import { openSubagents } from '../../src/features/subagents/personal-data.ts';
import type { KeyValueStore } from '../../src/kernel/bus/store/store.ts';
import { createGroupBuffer } from '../../src/kernel/intake/group-intake.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, messageId } from '../../src/kernel/message/ids.ts';
import { type InboundMessage, sessionKeyOf } from '../../src/kernel/message/message.ts';
import { createOwnerChats } from '../../src/kernel/owners.ts';
import { createPairing, createPairingCodes } from '../../src/kernel/people/pairing.ts';
import { openPeopleRows } from '../../src/kernel/people/people-rows.ts';
import { createUnknownSenders } from '../../src/kernel/people/unknown-senders.ts';
import {
  hearingIn,
  numberedIn,
  openQuestionRows,
} from '../../src/kernel/questions/question-rows.ts';
import type { Rows } from '../../src/kernel/rows.ts';
import { createSessionSettings } from '../../src/kernel/turns/origins.ts';
import { createMemoryStore, memoryRows } from '../support/memory-host.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { person } from './people-rig.ts';

const chat = { channel: channelName('telegram'), account: DEFAULT_ACCOUNT, chat: chatId('7') };
const newest = messageId('telegram:default:1');

const HEARD: InboundMessage = {
  ...{ id: newest, chat, sender: person('8'), addressing: 'direct', text: 'hello' },
  ...{ sentAt: 1, receivedAt: 1 },
};

/** Fails at the first look, as a disk that is full or busy does. */
function stumbling(state: KeyValueStore): KeyValueStore {
  let looks = 0;
  const list: KeyValueStore['list'] = async (...given) => {
    looks += 1;
    if (looks === 1) throw new Error('disk busy');
    return state.list(...given);
  };
  return { ...state, list };
}

const BOOKS = [
  [
    'questions that words answer',
    'open:1',
    (state: KeyValueStore) =>
      hearingIn(openQuestionRows(memoryRows(state)), HEARD, person('8'), 'owner'),
  ],
  [
    'mails',
    'mail:1',
    async (state: KeyValueStore) => (await openBridgeRows(memoryRows(state)).mails.list())[0],
  ],
  [
    'questions',
    'open:1',
    (state: KeyValueStore) => numberedIn(openQuestionRows(memoryRows(state)), chat),
  ],
  [
    'questions that ended',
    'ended:1',
    async (state: KeyValueStore) => (await openQuestionRows(memoryRows(state)).ended.list())[0],
  ],
  [
    'helpers',
    'run:1',
    async (state: KeyValueStore) => (await openSubagents(memoryRows(state)).runs.list())[0],
  ],
  [
    'jobs',
    'job:1',
    async (state: KeyValueStore) => (await openJobRows(memoryRows(state)).all.list())[0],
  ],
] as const;

/** Cut off, and valid JSON of another form than it should have. */
const DAMAGED = ['{"id":', 'null', '7', '"text"', '[]', '[null]', '{}', '{"id":1,"chat":null}'];

it.each(BOOKS)('a damaged row of %s is as if it were not there', async (_what, key, ask) => {
  for (const row of DAMAGED) {
    const state = createMemoryStore();
    await state.set(key, row);
    expect([row, await ask(state)]).toEqual([row, undefined]);
  }
});

it.each([
  ['mails', (state: KeyValueStore) => openBridgeRows(memoryRows(state)).mails],
  ['questions', (state: KeyValueStore) => openQuestionRows(memoryRows(state)).open],
] as const)('%s that could not be read are read when asked for again', async (_what, open) => {
  const rows: Pick<Rows<object>, 'list'> = open(stumbling(createMemoryStore()));
  await expect(rows.list()).rejects.toThrow('disk busy');
  expect(await rows.list()).toEqual([]);
});

it('whoever was decided about in a damaged row is blocked, and nobody else', async () => {
  const state = createMemoryStore();
  const eve = { channel: 'telegram', userId: '8', name: 'Eve', role: 'trusted', at: 1 };
  await state.setMany([
    { key: 'approved:telegram:7', value: '{"role":"trus' },
    { key: 'approved:telegram:8', value: JSON.stringify(eve) },
    { key: 'approved:telegram:9', value: '{"role":"trusted"}' },
    { key: 'person:p1', value: '{' },
    { key: 'person:p2', value: '{"id":"p2","doors":7}' },
  ]);
  const { approvals, persons } = await openPeopleRows(memoryRows(state), state).known();
  expect(approvals.get('telegram:7')?.role).toBe('blocked');
  expect(approvals.get('telegram:8')?.role).toBe('trusted');
  expect(approvals.get('telegram:9')?.role).toBe('blocked');
  expect(persons.all.size).toBe(0);
});

it('an owner whose last door cannot be read is found where they write next', async () => {
  const state = createMemoryStore();
  await state.set('owner-door', '{"channel":');
  const pairing = createPairing({
    rows: memoryRows(state),
    peopleRows: openPeopleRows(memoryRows(state), state),
    clock: createMovableClock(),
    randomBytes,
  });
  const door = createOwnerChats({ state, pairing });
  expect((await door.chat(() => true)).channel).toBe('web');
  await door.wroteIn(chat);
  expect(await door.chat(() => true)).toEqual(chat);
});

it.each([
  [
    'a stranger',
    'stranger:telegram:7',
    (state: KeyValueStore) => unknownSendersOn(state).hold(HEARD, person('8')),
  ],
  [
    'what was said in a group',
    `heard:${sessionKeyOf(chat)}`,
    (state: KeyValueStore) =>
      createGroupBuffer(memoryRows(state), createMovableClock()).note(HEARD),
  ],
  [
    'codes of a channel',
    'codes:telegram',
    (state: KeyValueStore) =>
      createPairingCodes({
        rows: memoryRows(state),
        clock: createMovableClock(),
        randomBytes,
      }).issue('telegram'),
  ],
  [
    'a conversation’s settings',
    sessionKeyOf(chat),
    (state: KeyValueStore) => createSessionSettings(state).get(sessionKeyOf(chat)),
  ],
  ['when doors were heard', 'doors', (state: KeyValueStore) => outagesOn(state)],
  ['what was spent', '2026-01-01|total', (state: KeyValueStore) => storedDays(state, '2026-01-01')],
] as const)('a damaged row of %s stops nothing', async (_what, key, use) => {
  for (const row of DAMAGED) {
    const state = createMemoryStore();
    await state.set(key, row);
    await expect(use(state)).resolves.not.toThrow();
  }
});

const unknownSendersOn = (state: KeyValueStore) =>
  createUnknownSenders({ rows: memoryRows(state), clock: createMovableClock() });
const outagesOn = (state: KeyValueStore) =>
  createOutages({
    ...{ state, clock: createMovableClock(), accounts: () => [], isRunning: () => true },
    ...{ timeZone: () => 'UTC', tellOwner: () => undefined },
  });
