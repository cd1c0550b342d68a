// A message that came to several accounts of a channel is one account's to answer.

import { expect, test } from 'vitest';
import type { Verdict } from '../../src/kernel/access/admission.ts';
import { createSharedArrivals } from '../../src/kernel/intake/receive.ts';
import {
  type AccountName,
  accountId,
  accountName,
  channelName,
  chatId,
  messageId,
  userId,
} from '../../src/kernel/message/ids.ts';
import type { InboundMessage } from '../../src/kernel/message/message.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createMemoryStore } from '../support/memory-host.ts';

const MAIL = channelName('mail');
const [ONE, TWO, THREE] = ['one', 'two', 'three'].map((name) =>
  accountName({ channel: MAIL, account: accountId(name) }),
) as [AccountName, AccountName, AccountName];

function worldWhere(letIn: readonly AccountName[], hasSeveral = true) {
  const rows = createMemoryStore();
  const judge = async ({ chat }: InboundMessage): Promise<Verdict> =>
    letIn.includes(accountName(chat))
      ? { kind: 'admit', role: 'trusted' }
      : { kind: 'refuse', gate: 'sender not on the allow list', isUnknown: true };
  const make = () => {
    const state = { scope: () => rows };
    return createSharedArrivals({ state, judge, clock: systemClock, hasSeveral: () => hasSeveral });
  };
  return { make, arrivals: make() };
}

function messageTo(account: AccountName): InboundMessage {
  const [, name = ''] = account.split('@');
  return {
    id: messageId(`${account}:1`),
    chat: { channel: MAIL, account: accountId(name), chat: chatId('ann@p.test') },
    sender: { kind: 'person', id: userId('ann@p.test'), verified: 'verified' },
    ...{ addressing: 'direct', text: '', sentAt: 0, receivedAt: 0 },
  };
}

test('the first that asks answers, also when all ask at once and when it is asked again', async () => {
  const { make, arrivals } = worldWhere([ONE, TWO, THREE]);
  const ask = (by: AccountName, at = arrivals) => at(by, 'copy', messageTo(by));
  expect(await Promise.all([ask(TWO), ask(ONE), ask(THREE)])).toEqual([TWO, TWO, TWO]);
  const restarted = make();
  expect([await ask(ONE, restarted), await ask(TWO, restarted)]).toEqual([TWO, TWO]);
  expect(await arrivals(ONE, 'another', messageTo(ONE))).toBe(ONE);
});

test('one that lets the sender in answers before one that does not', async () => {
  const { arrivals } = worldWhere([TWO, THREE]);
  const ask = (by: AccountName) => arrivals(by, 'copy', messageTo(by));
  expect(await ask(ONE)).toBe(ONE);
  expect(await ask(TWO)).toBe(TWO);
  expect([await ask(ONE), await ask(THREE)]).toEqual([TWO, TWO]);
});

test('somebody whom none lets in knocks at one of them', async () => {
  const { arrivals } = worldWhere([]);
  expect(await arrivals(TWO, 'copy', messageTo(TWO))).toBe(TWO);
  expect(await arrivals(ONE, 'copy', messageTo(ONE))).toBe(TWO);
});

test('a channel with one account asks nobody', async () => {
  const { arrivals } = worldWhere([], false);
  expect(await arrivals(ONE, 'copy', messageTo(ONE))).toBe(ONE);
  expect(await arrivals(TWO, 'copy', messageTo(TWO))).toBe(TWO);
});
