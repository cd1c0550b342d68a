// Texts that a person wants forgotten, in the queues and in the log of the page.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { forgetMails, MailRegister } from '../../src/channels/email/mail-register.ts';
import { ChatLog, forgetSaid } from '../../src/channels/web/chat-log.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { accountName, messageId } from '../../src/kernel/message/ids.ts';
import { holdsWords } from '../../src/kernel/sessions/rules/forgetting.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { outbound, session } from '../contract/bus-bench.ts';
import { createMemoryStore } from '../support/memory-host.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

it('leave the log of a page with its title, and the file that held them', async () => {
  const folder = await temporaryFolder();
  const clock = createMovableClock();
  const path = join(folder, 'state.db');
  await using store = await openEmbeddedStore({ path, clock, log: silentLogger });
  const state = store.scope('channel:web:default');
  const log = new ChatLog(state);
  const said = (id: string, text: string) =>
    log.append('w1', { id: messageId(id), from: 'person', text, at: clock.now() });
  await said('m1', 'Quasimodo is my dentist');
  await said('m2', 'and it rains');
  const holds = holdsWords('quasimodo') ?? expect.fail();
  expect(await forgetSaid(state, 'w2', holds)).toBe(0);
  expect(await forgetSaid(state, 'w1', holds)).toBe(1);
  expect(await forgetSaid(state, 'w1', holds)).toBe(0);
  expect((await log.read('w1', 0, 10)).said.map(({ text }) => text)).toEqual(['and it rains']);
  expect(await log.chats(5)).toMatchObject([{ chat: 'w1', title: '…' }]);
  await store.scrub();
  for (const end of ['', '-wal']) {
    expect(await readFile(path + end, 'latin1')).not.toContain('Quasimodo');
  }
});

it('leave a dead letter, and are named where they are still to be sent', async () => {
  const path = join(await temporaryFolder(), 'state.db');
  const clock = createMovableClock();
  await using store = await openEmbeddedStore({ path, clock, log: silentLogger });
  const letter = outbound('olga', 'o1', 'Quasimodo called');
  await store.queue(letter);
  const forget = () =>
    store.forgetTexts([session('olga')], holdsWords('quasimodo') ?? expect.fail());
  expect(await forget()).toEqual({ texts: 0, underWay: [letter.chat] });
  const { claimed } = await store.claimDeliveries(accountName(letter.chat), () => 1);
  expect(await forget()).toEqual({ texts: 0, underWay: [letter.chat] });
  const [{ attempt = 0 } = {}] = claimed;
  await store.settle({ id: letter.id, attempt }, { kind: 'dead', reason: 'blocked' });
  expect(await forget()).toEqual({ texts: 1, underWay: [] });
  expect(await store.dead()).toEqual([]);
  expect(await store.outbound(letter.id)).toBeUndefined();
});

it('leave the register of mails, of that sender alone', async () => {
  const state = createMemoryStore();
  const register = await MailRegister.open(state);
  const arrived = (name: string, wholeText: string) => {
    const sender = `${name}@example.org`;
    const parent = { subject: `About Quasimodo, ${name}`, messageId: `<1@${name}>` };
    const mail = { id: messageId(name), fingerprint: name, thread: name, sender, parent };
    const quote = { at: 'today', text: wholeText };
    const more = { level: 'verified', receivedAt: 1, wholeText, quote };
    return register.noteInbound({ ...mail, ...more } as never, wholeText);
  };
  await arrived('olga', 'my dentist is Quasimodo');
  await arrived('anna', 'I read about Quasimodo');
  const holds = holdsWords('quasimodo') ?? expect.fail();
  // The text, the quote, and the subject of the mail and of its thread.
  expect(await forgetMails(state, 'olga@example.org', holds)).toBe(4);
  expect(await forgetMails(state, 'olga@example.org', holds)).toBe(0);
  expect(await state.get('text/olga')).toBeUndefined();
  expect(await register.quote(messageId('olga'))).toBeUndefined();
  expect(await state.get('text/anna')).toContain('Quasimodo');
  const rows = await state.list('');
  const holding = rows.filter(({ value }) => value.includes('Quasimodo')).map(({ key }) => key);
  expect(holding.sort()).toEqual(['in/anna', 'quote/anna', 'text/anna', 'thread/anna']);
});
