// From which of our mailboxes a mail to somebody goes out.

import { expect, test } from 'vitest';
import { createTargets } from '../../src/features/letters/drafts.ts';
import { accountId, channelName, chatId, DEFAULT_ACCOUNT } from '../../src/kernel/message/ids.ts';

const MAIL = channelName('mail');
const FIRST = { channel: MAIL, account: DEFAULT_ACCOUNT, addresses: ['me@a.test'] };
const WORK = { channel: MAIL, account: accountId('work'), addresses: ['me@w.test', 'us@w.test'] };
const IN_CHAT = { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') };
const IN_WORK = { channel: MAIL, account: WORK.account, chat: chatId('ann@p.test') };

function targetOf(from: string | undefined, chat = IN_CHAT, mailboxes = [FIRST, WORK]) {
  const targets = createTargets({
    persons: { find: async () => [], inChat: async () => undefined, list: async () => [] },
    isReached: () => true,
    mailboxes: () => mailboxes,
  });
  const named = from === undefined ? {} : { from };
  const letter = { to: 'bo@p.test', ...named, subject: 's', markdown: 'm' };
  return targets({ kind: 'mail', ...letter }, chat, true);
}

test.each([
  ['the first, where none is named', undefined, IN_CHAT, FIRST],
  ['that of the conversation, where none is named', undefined, IN_WORK, WORK],
  ['the one named', 'work', IN_CHAT, WORK],
  ['the one named with its channel', 'mail@work', IN_CHAT, WORK],
  ['the one with that address', ' US@w.test', IN_CHAT, WORK],
  ['the first, named from another', 'default', IN_WORK, FIRST],
])('it is %s', async (_name, from, chat, { account }) => {
  const found = { channel: MAIL, account, chat: 'bo@p.test' };
  expect(await targetOf(from, chat)).toEqual({ kind: 'found', chat: found, name: 'bo@p.test' });
});

test('an address that is not ours is refused, whatever it looks like', async () => {
  for (const from of ['boss@victim.test', 'me@a.test.evil', '']) {
    expect(await targetOf(from)).toEqual({
      kind: 'refused',
      text: '`from` names no mailbox. There are: default (me@a.test), work (me@w.test).',
    });
  }
});

test('without a mailbox no mail goes out', async () => {
  expect(await targetOf(undefined, IN_CHAT, [])).toMatchObject({ kind: 'refused' });
});
