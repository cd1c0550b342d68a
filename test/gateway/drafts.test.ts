// What decides whether an owner sees a text before it goes out, how long they may take, and what is
// left of a draft when a process dies in the middle. Cases A09 and D5 of the catalogue.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createAllowRules, openAllowRuleRows } from '../../src/features/approvals/allow-rules.ts';
import { createDrafts } from '../../src/features/letters/drafts.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import type { SendPolicy } from '../../src/kernel/config/limits.ts';
import { channelName, chatId, messageId, threadId, turnId } from '../../src/kernel/message/ids.ts';
import type { Letter } from '../../src/kernel/message/message.ts';
import {
  type ChatRef,
  type InboundMessage,
  type OutboundMessage,
  sessionKeyOf,
} from '../../src/kernel/message/message.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { openQuestionRows } from '../../src/kernel/questions/question-rows.ts';
import { createQuestions } from '../../src/kernel/questions/questions.ts';
import { createRows, MARKS } from '../../src/kernel/rows.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { readHours } from '../../src/lib/time/zone-time.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { questionEdge } from '../support/question-edge.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { OWNER, OWNER_RIGHTS, placeOf } from './approvals-rig.ts';
import { person } from './people-rig.ts';

const HOUR = 3_600_000;
const MAIL = channelName('mail');
const mail = (to: string, markdown = 'Hi.', cc?: readonly string[]): Letter => ({
  ...{ kind: 'mail', to, subject: 'Hi', markdown },
  ...(cc === undefined ? {} : { cc }),
});
const placeOfMail = (to: string) => ({ ...placeOf(to), channel: MAIL, chat: chatId(to) });

async function makeRig(policy: SendPolicy = 'first_contact') {
  const clock = createMovableClock();
  const folder = await temporaryFolder();
  const edge = { policy, minute: 12 * 60 };
  const outbox: OutboundMessage[] = [];
  const heard: InboundMessage[] = [];

  async function open() {
    const store = await openEmbeddedStore({ path: join(folder, 'state.db'), clock, log });
    const limits = { maxPending: 10_000, maxPendingPerChat: 1000 };
    const bus = createMessageBus({ store, clock, log, limits });
    const rows = createRows(store);
    const questions = createQuestions({
      ...{ rows: openQuestionRows(rows), bus, clock, log, randomBytes },
      handlers: () => ({ draft: drafts.handler }),
      ...questionEdge(bus),
    });
    const standing = createAllowRules({
      ...{ rows: openAllowRuleRows(rows), clock, log, days: () => 30 },
      audit: { note: () => undefined, enter: async () => undefined },
      origins: async () => ({ rights: ALL_RIGHTS, isForeign: false, isOwnerHere: true }),
      outsideChats: placeOf(OWNER),
      personOf: async (whose) => whose,
      timeZone: () => '',
    });
    const drafts = createDrafts({
      written: rows({ ...MARKS, scope: 'drafts', prefix: 'written:' }),
      ...{ bus, questions, standing, clock, log },
      hasWrittenTo: (chat) => store.hasWrittenTo(chat),
      targets: async ({ to }) => ({
        ...{ kind: 'found', name: to },
        chat: placeOfMail(to),
      }),
      ownerChat: async () => placeOf(OWNER),
      policy: () => ({ ...edge, hours: readHours('08:00-20:00') ?? { from: 0, to: 0 } }),
      redact: (text) => text.replaceAll('s3cret', '[redacted]'),
    });
    const stop = new AbortController();
    const running = questions.run(stop.signal);
    return { store, bus, questions, drafts, stop, running };
  }
  type Opened = Awaited<ReturnType<typeof open>>;
  async function close({ store, bus, stop, running }: Opened) {
    stop.abort();
    await running;
    await bus[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  }
  let opened = await open();
  let calls = 0;

  async function sent(): Promise<readonly OutboundMessage[]> {
    for (const channel of [placeOf(OWNER).channel, MAIL]) {
      for (;;) {
        const { claimed } = await opened.store.claimDeliveries(channel, () => 1000);
        for (const delivery of claimed) {
          outbox.push(delivery.message);
          await opened.store.settle(delivery, { kind: 'sent', nativeIds: [] });
        }
        if (claimed.length === 0) break;
      }
    }
    return outbox;
  }
  const question = async () => (await sent()).findLast(({ choices }) => choices !== undefined);
  const message = (extra: Partial<InboundMessage>): InboundMessage => ({
    ...{ id: messageId(`in-${calls++}`), chat: placeOf(OWNER), sender: person(OWNER) },
    ...{ addressing: 'direct', text: '', sentAt: clock.now(), receivedAt: clock.now(), ...extra },
  });
  return {
    clock,
    edge,
    sent,
    question,
    /** An answer, or anything else that no letter is. */
    async answers(chat: ChatRef) {
      await opened.bus.send({ id: messageId(`answer-${calls++}`), chat, markdown: 'Yes.' });
      await sent();
    },
    mails: async () => (await sent()).filter(({ chat }) => chat.channel === MAIL),
    get questions() {
      return opened.questions;
    },
    post(
      letter: Letter,
      changes: {
        isTainted?: boolean;
        isOwnerHere?: boolean;
        at?: number;
        session?: string;
        whose?: string;
      } = {},
    ) {
      const { isTainted = false, isOwnerHere = true, at = calls++, whose = 'chat:1' } = changes;
      const chat = placeOf(changes.session ?? OWNER);
      const turn = { session: sessionKeyOf(chat), turnId: turnId(`t${at}`), chat };
      return opened.drafts.post(
        { letter, rights: OWNER_RIGHTS, isTainted, ordinal: 0 },
        { ...turn, person: OWNER_TURN, replyTo: undefined, asker: 'you', isOwnerHere, whose },
      );
    },
    /** The newest question that says so. */
    async press(label: string, about = '') {
      const asked = (await sent()).findLast(
        ({ choices, markdown }) => choices !== undefined && markdown.includes(about),
      );
      const token = asked?.choices?.find((one) => one.label === label)?.token ?? '';
      return (await opened.questions.press(message({ press: token }), 'owner'))?.words;
    },
    async says(extra: Partial<InboundMessage>) {
      const said = message(extra);
      const take = await opened.questions.heard(said, 'owner');
      await take?.();
      return { said, again: async () => (await opened.questions.heard(said, 'owner'))?.() };
    },
    /** What the conversation was told. */
    async told() {
      const { claimed } = await opened.store.claimTurns(() => 1000);
      for (const turn of claimed) {
        heard.push(...turn.messages.map((one) => one.message));
        const throughSeq = turn.messages.at(-1)?.seq ?? 0;
        await opened.store.endTurn(turn, { kind: 'done', throughSeq, outbound: [] });
      }
      return heard.map(({ text }) => text);
    },
    async restart() {
      await close(opened);
      opened = await open();
    },
    async [Symbol.asyncDispose]() {
      await close(opened);
    },
  };
}

describe('a letter', () => {
  test.each<[SendPolicy, number, 'sent' | 'shown']>([
    ['never', 3, 'sent'],
    ['first_contact', 12, 'shown'],
    ['always', 12, 'shown'],
    ['outside_hours', 12, 'sent'],
    ['outside_hours', 7, 'shown'],
    ['outside_hours', 20, 'shown'],
  ])('under the policy %s at %i o’clock is %s', async (policy, hour, outcome) => {
    await using rig = await makeRig(policy);
    rig.edge.minute = hour * 60;
    await rig.post(mail('ann@x.test'));
    expect(await rig.mails()).toHaveLength(outcome === 'sent' ? 1 : 0);
    expect((await rig.question()) !== undefined).toBe(outcome === 'shown');
  });

  test.each([
    ['that untrusted content may have wanted', { isTainted: true }],
    ['that somebody else asks for', { isOwnerHere: false }],
  ])('%s is shown whatever the policy', async (_, changes) => {
    await using rig = await makeRig('never');
    expect((await rig.post(mail('ann@x.test'), changes)).text).toMatch(/^Not sent yet/);
    expect(await rig.mails()).toEqual([]);
  });

  test('goes without a question to whom an owner had one sent before, unless always is asked', async () => {
    await using rig = await makeRig();
    await rig.post(mail('ann@x.test'));
    expect(await rig.press('Send')).toBe('Sent.');
    expect((await rig.post(mail('ann@x.test', 'More.'))).text).toMatch(/^Sent to/);
    rig.edge.policy = 'always';
    expect((await rig.post(mail('ann@x.test', 'Again.'))).text).toMatch(/^Not sent yet/);
    expect(await rig.mails()).toHaveLength(2);
  });

  test('goes without a question also to whom an answer went before, in whichever thread', async () => {
    await using rig = await makeRig();
    await rig.answers({ ...placeOfMail('ann@x.test'), thread: threadId('t1') });
    expect((await rig.post(mail('ann@x.test'))).text).toMatch(/^Sent to/);
    expect((await rig.post(mail('ann@x.test.evil'))).text).toMatch(/^Not sent yet/);
  });

  test('with copies is shown with all of them unless everybody was written to before', async () => {
    await using rig = await makeRig();
    await rig.answers(placeOfMail('ann@x.test'));
    const cc = ['bob@x.test', 'eve@x.test'];
    expect((await rig.post(mail('ann@x.test', 'Hi.', cc))).text).toMatch(/^Not sent yet/);
    expect((await rig.question())?.markdown).toContain(
      'Send this mail to `ann@x.test` (mail), with copies to `bob@x.test`, `eve@x.test`?',
    );
    await rig.press('Send');
    expect((await rig.mails()).at(-1)?.copies).toEqual(cc);
    const told = 'Sent to ann@x.test, with copies to bob@x.test. Do not send it again.';
    expect((await rig.post(mail('ann@x.test', 'More.', ['bob@x.test']))).text).toBe(told);
    expect((await rig.post(mail('eve@x.test'))).text).toMatch(/^Sent to/);
    rig.edge.policy = 'never';
    const many = Array.from({ length: 6 }, (_, n) => `new${n}@x.test`);
    expect(await rig.post(mail('ann@x.test', 'All.', many))).toMatchObject({ status: 'failed' });
  });

  test('reaches no more than five new addresses in a day', async () => {
    await using rig = await makeRig('never');
    for (let n = 0; n < 5; n += 1) await rig.post(mail(`new${n}@x.test`));
    expect(await rig.post(mail('one-more@x.test'))).toMatchObject({ status: 'failed' });
    expect((await rig.post(mail('new3@x.test', 'More.'))).status).toBe('ok');
    await rig.clock.advance(25 * HOUR);
    expect((await rig.post(mail('one-more@x.test'))).status).toBe('ok');
  });

  test('comes whole as a file where it is long, and holds no secret', async () => {
    await using rig = await makeRig();
    await rig.post(mail('ann@x.test', 'x'.repeat(40_000)));
    const [file] = (await rig.question())?.attachments ?? [];
    expect(file).toMatchObject({
      name: 'letter.txt',
      sizeBytes: 'Subject: Hi\n\n'.length + 40_000,
    });
    await rig.press('Drop');
    await rig.post(mail('ann@x.test', 'It is s3cret. \u202e```'));
    const shown = (await rig.question())?.markdown ?? '';
    expect(shown).toContain('It is [redacted]. \\u202e```');
    await rig.press('Send');
    expect((await rig.mails()).map(({ markdown }) => markdown.includes('s3cret'))).toEqual([false]);
  });

  test('of a turn that is tried again is shown once, and sent once', async () => {
    await using rig = await makeRig();
    for (let n = 0; n < 3; n += 1) await rig.post(mail('ann@x.test'), { at: 7 });
    expect((await rig.sent()).filter(({ choices }) => choices)).toHaveLength(1);
    await rig.press('Send');
    expect((await rig.post(mail('ann@x.test'), { at: 7 })).text).toMatch(/^Sent to/);
    expect(await rig.mails()).toHaveLength(1);
  });
});

describe('a draft', () => {
  test('is dropped after a day, and everybody hears of it', async () => {
    await using rig = await makeRig();
    await rig.post(mail('ann@x.test'));
    await rig.clock.advance(25 * HOUR);
    await expect.poll(async () => (await rig.sent()).at(-1)?.markdown).toMatch(/12 hours/);
    expect(await rig.press('Send')).toMatch(/no longer/);
    expect(await rig.told()).toEqual([expect.stringMatching(/No owner answered in time/)]);
    expect(await rig.mails()).toEqual([]);
  });

  test('that waits for another text is dropped after a day too', async () => {
    await using rig = await makeRig();
    await rig.post(mail('ann@x.test'));
    await rig.press('Edit');
    await rig.clock.advance(25 * HOUR);
    await expect.poll(async () => (await rig.sent()).at(-1)?.markdown).toMatch(/12 hours/);
    await rig.says({ text: 'too late' });
    expect(await rig.mails()).toEqual([]);
  });

  test('that an owner chose last takes the new text, also where another one is newer', async () => {
    await using rig = await makeRig();
    await rig.post(mail('ann@x.test'));
    await rig.post(mail('ben@x.test'));
    await rig.press('Edit', 'ben@x.test');
    await rig.clock.advance(1000);
    await rig.press('Edit', 'ann@x.test');
    await rig.restart();
    await rig.says({ text: 'For Ann.' });
    await rig.press('Send', 'For Ann.');
    expect((await rig.mails()).map(({ chat, markdown }) => [chat.chat, markdown])).toEqual([
      ['ann@x.test', 'For Ann.'],
    ]);
  });

  test('keeps its new text over a restart, and takes the message that held it once', async () => {
    await using rig = await makeRig();
    await rig.post(mail('ann@x.test'));
    await rig.press('Edit');
    await rig.restart();
    const { again } = await rig.says({ text: 'My own words.' });
    await rig.restart();
    await again();
    await rig.says({ text: 'for the agent' });
    expect((await rig.question())?.markdown).toContain('My own words.');
    await rig.press('Send');
    expect((await rig.mails()).map(({ markdown }) => markdown)).toEqual(['My own words.']);
    expect(await rig.told()).toEqual([expect.stringMatching(/after reading it/)]);
  });

  test.each([
    ['somebody else', { sender: person('9') }],
    ['a group', { addressing: 'mention' as const }],
    ['another chat', { chat: placeOf('other') }],
    ['a forged sender', { sender: person(OWNER, { verified: 'unverified' }) }],
    ['our own machinery', { sender: { kind: 'system', source: 'cron' } as const }],
  ])('takes no new text from %s', async (name, extra) => {
    await using rig = await makeRig();
    await rig.post(mail('ann@x.test'));
    await rig.press('Edit');
    const role = name === 'somebody else' ? 'trusted' : 'owner';
    const { said } = { said: { ...(await rig.says({ text: '' })).said, text: 'mine', ...extra } };
    expect(await rig.questions.heard(said, role)).toBeUndefined();
  });
});

describe('letters that an owner always allows', () => {
  const seen = async (rig: Awaited<ReturnType<typeof makeRig>>) =>
    (await rig.sent()).filter(({ choices }) => choices !== undefined).length;

  test('go out unseen to just those people, from all conversations of that person', async () => {
    await using rig = await makeRig('always');
    await rig.post(mail('anna@x.org'));
    expect(await rig.press('Send, always to them')).toMatch(/^Sent\. .* always, .*\/approvals/);
    await rig.restart();
    const before = await seen(rig);
    const sent = await rig.post(mail('anna@x.org', 'Another text.'));
    expect(sent).toEqual({ status: 'ok', text: 'Sent to anna@x.org. Do not send it again.' });
    expect(await rig.mails()).toHaveLength(2);
    expect(await seen(rig)).toBe(before);
    for (const [letter, changes] of [
      [mail('bert@x.org'), {}],
      [mail('anna@x.org', 'Hi.', ['bert@x.org']), {}],
      [mail('anna@x.org', 'Copy this', undefined), { isTainted: true }],
      [mail('anna@x.org', 'Somebody'), { whose: 'chat:2' }],
    ] as const) {
      expect((await rig.post(letter, changes)).text, JSON.stringify(letter)).toMatch(/^Not sent/);
    }
    expect(await rig.mails()).toHaveLength(2);
    expect((await rig.post(mail('anna@x.org', 'Elsewhere'), { session: '5' })).text).toMatch(
      /^Sent/,
    );
  });

  test.each([
    ['Send, for 1 hour to them', / for 1 hour, /, 3_600_000],
    ['Send, today to them', / today, /, 86_400_000],
    ['Send, for 30 days to them', / for 30 days, /, 30 * 86_400_000],
  ])('are shown again after %s', async (label, words, lastsMs) => {
    await using rig = await makeRig('always');
    await rig.post(mail('anna@x.org'));
    expect(await rig.press(label)).toMatch(words);
    expect((await rig.post(mail('anna@x.org', 'Soon after.'))).text).toMatch(/^Sent/);
    await rig.clock.advance(lastsMs);
    expect((await rig.post(mail('anna@x.org', 'Later.'))).text).toMatch(/^Not sent/);
  });

  test('are not to be had where untrusted content were read', async () => {
    await using rig = await makeRig('always');
    await rig.post(mail('anna@x.org'), { isTainted: true });
    const labels = (await rig.question())?.choices?.map(({ label }) => label);
    expect(labels).toEqual(['Send', 'Edit', 'Drop']);
  });
});

test('a letter that is over is forgotten with the words it holds, one that waits is not', async () => {
  await using rig = await makeRig('always');
  const holds = (text: string) => text.includes('zeppelin');
  await rig.post(mail('anna@x.org', 'By zeppelin.'), { at: 1 });
  expect(await rig.questions.forget(['chat:1'], holds)).toBe(0);
  await rig.press('Drop');
  expect(await rig.questions.forget(['chat:9'], holds)).toBe(0);
  expect(await rig.questions.forget(['chat:1'], holds)).toBe(1);
  await rig.restart();
  expect(await rig.questions.forget(['chat:1'], holds)).toBe(0);
});
