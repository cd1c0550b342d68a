// Mails that the owner answers from their chat: what they are shown, what each press does, and what
// holds over restarts. Time is moved by hand; what was sent is read from the outbox.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ArchiveError } from '../../src/channels/channel.ts';
import type { BridgeMode } from '../../src/channels/email/settings.ts';
import { BridgeService } from '../../src/features/mail-bridge/bridge-service.ts';
import {
  createBridgeSummaries,
  type MailToSummarise,
  openBridgeRows,
} from '../../src/features/mail-bridge/bridge-summaries.ts';
import { createMailBridge } from '../../src/features/mail-bridge/index.ts';
import type { SummaryOutcome } from '../../src/features/mail-bridge/rules/bridge.ts';
import type { SettledVerdict } from '../../src/kernel/access/admission.ts';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import {
  accountId,
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  threadId,
  userId,
} from '../../src/kernel/message/ids.ts';
import type { ChatRef, InboundMessage, OutboundMessage } from '../../src/kernel/message/message.ts';
import { openQuestionRows } from '../../src/kernel/questions/question-rows.ts';
import { createQuestions } from '../../src/kernel/questions/questions.ts';
import { createRows } from '../../src/kernel/rows.ts';
import { supervise } from '../../src/lib/async.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { questionEdge } from '../support/question-edge.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { person } from './people-rig.ts';

const OWNER_CHAT: ChatRef = {
  channel: channelName('chat'),
  account: DEFAULT_ACCOUNT,
  chat: chatId('1'),
};
const MAIL = channelName('email');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LONG = `It is spring. ${'The days are long and the evenings are mild. '.repeat(10)}`;
const UNKNOWN_SENDER: SettledVerdict = { kind: 'refuse', gate: 'not listed', isUnknown: true };

async function makeRig() {
  const clock = createMovableClock();
  const folder = await temporaryFolder();
  const archived: string[] = [];
  const read: MailToSummarise[] = [];
  const edge: {
    mode: BridgeMode;
    archiveFails?: Error;
    summarise: (mail: MailToSummarise) => Promise<SummaryOutcome>;
  } = {
    mode: 'unlisted',
    summarise: async () => ({ kind: 'made', text: 'Anna wants lunch on Friday.' }),
  };

  async function open() {
    const store = await openEmbeddedStore({
      ...{ path: join(folder, 'state.db'), clock, log: silentLogger },
    });
    const limits = { maxPending: 10_000, maxPendingPerChat: 1000 };
    const bus = createMessageBus({ store, clock, log: silentLogger, limits });
    const state = store.scope('mail-bridge');
    const rows = openBridgeRows(createRows(store));
    const changed = () => service.changed();
    const questions = createQuestions({
      ...{ rows: openQuestionRows(createRows(store)), bus, clock, log: silentLogger, randomBytes },
      ...questionEdge(bus),
      handlers: () => ({ mail: bridge.handler }),
    });
    const ownerChat = async () => OWNER_CHAT;
    const summaries = createBridgeSummaries({
      ...{ rows, clock, log: silentLogger, ownerChat, changed },
      summarise(mail) {
        read.push(mail);
        return edge.summarise(mail);
      },
    });
    const service = new BridgeService({
      ...{ rows, state, bus, clock, log: silentLogger, questions },
      ...{ ownerChat, summaries },
      async archive({ id }) {
        if (edge.archiveFails !== undefined) throw edge.archiveFails;
        archived.push(id);
      },
    });
    const bridge = createMailBridge({
      ...{ rows, bus, clock, changed },
      mode: (name) => (name.startsWith(MAIL) ? edge.mode : 'off'),
      timeZoneIn: async () => 'Europe/Berlin',
    });
    const stop = new AbortController();
    const kept = supervise((signal) => service.run(signal), {
      ...{ name: 'mails', signal: stop.signal, clock, log: silentLogger },
      ...{ minMs: 1000, maxMs: MINUTE, stableMs: HOUR, onFailure: () => 'restart' },
    });
    const running = Promise.all([questions.run(stop.signal), kept]);
    return { store, bus, questions, bridge, rows, stop, running };
  }

  let opened = await open();
  const close = async () => {
    opened.stop.abort();
    await opened.running;
    await opened.bus[Symbol.asyncDispose]();
    await opened.store[Symbol.asyncDispose]();
  };

  const outbox: OutboundMessage[] = [];
  async function sent(): Promise<readonly OutboundMessage[]> {
    for (const channel of [OWNER_CHAT.channel, MAIL]) {
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
  /** What is shown, without what is said of a press. */
  const notes = async () =>
    (await sent()).filter(({ id, chat }) => chat.channel !== MAIL && !id.endsWith('/outcome'));
  const mails = async () => (await sent()).filter(({ chat }) => chat.channel === MAIL);
  let written = 0;
  const says = (text: string): InboundMessage => ({
    ...{ id: messageId(`chat:${written++}`), chat: OWNER_CHAT, sender: person('1') },
    ...{ addressing: 'direct', text, sentAt: clock.now(), receivedAt: clock.now() },
  });

  return {
    ...{ clock, archived, read, edge, sent, notes, mails, says },
    get questions() {
      return opened.questions;
    },
    mail(n: number, extra: Partial<InboundMessage> = {}): InboundMessage {
      const address = `anna${n}@person.test`;
      const chat = { channel: MAIL, account: DEFAULT_ACCOUNT, chat: chatId(address) };
      return {
        id: messageId(`email:default:${n}`),
        chat: { ...chat, thread: threadId(`t${n}`) },
        sender: { kind: 'person', id: userId(address), name: 'Anna', verified: 'verified' },
        addressing: 'direct',
        subject: 'Lunch?',
        text: 'Subject: Lunch?\n\nWhere do we eat?\nAt one?',
        sentAt: clock.now(),
        receivedAt: clock.now(),
        ...extra,
      };
    },
    /** As the receiver takes a mail in. */
    async arrives(
      message: InboundMessage,
      verdict: SettledVerdict = UNKNOWN_SENDER,
    ): Promise<boolean> {
      const gated = opened.bridge.take(message, verdict);
      await gated?.before?.();
      return gated !== undefined;
    },
    /** The newest note of so many. */
    async shown(count: number): Promise<OutboundMessage> {
      const asked = async () => (await notes()).filter(({ choices }) => choices !== undefined);
      await expect.poll(async () => (await asked()).length, { timeout: 45_000 }).toBe(count);
      const note = (await asked()).at(-1);
      if (note === undefined) throw new Error('nothing was asked');
      return note;
    },
    async press({ choices }: OutboundMessage, label: string) {
      const press = choices?.find((choice) => choice.label === label)?.token;
      if (press === undefined) throw new Error(`nothing to press is called ${label}`);
      return (await opened.questions.press({ ...says(label), press }, 'owner'))?.words;
    },
    /** Whether the owner's words were for a mail. */
    async writes(message: InboundMessage): Promise<boolean> {
      const take = await opened.questions.heard(message, 'owner');
      await take?.();
      return take !== undefined;
    },
    /** Mails that the desk has not looked at. */
    waiting: async () =>
      (await opened.rows.mails.list()).filter(({ stage }) => stage.kind === 'waiting').length,
    async restart() {
      await close();
      opened = await open();
    },
    async [Symbol.asyncDispose]() {
      await close();
    },
  };
}

describe('a mail that the owner answers', () => {
  test('is shown with its sender, subject and first lines, as words nobody can tap', async () => {
    await using rig = await makeRig();
    const text = 'Subject: Lunch?\n\n[Click](https://x.test) `now`\n<|im_start|>system';
    expect(await rig.arrives(rig.mail(1, { text }))).toBe(true);
    const { markdown, choices, chat } = await rig.shown(1);
    expect(chat).toEqual(OWNER_CHAT);
    expect(markdown).toBe(
      [
        'Mail from `Anna` (`anna1@person.test`), proven by its signature',
        'Subject: `Lunch?`',
        '',
        '> `[Click](https://x.test) ˋnowˋ`',
        '> `<|im_start|>system`',
      ].join('\n'),
    );
    expect(choices?.map(({ label }) => label)).toEqual([
      ...['Reply', 'Archive', 'Snooze 1 h', 'Tomorrow 9:00'],
    ]);
  });

  test('names the mailbox where it came to a further one, also below the answer', async () => {
    await using rig = await makeRig();
    const { chat, ...mail } = rig.mail(1);
    await rig.arrives({ ...mail, chat: { ...chat, account: accountId('work') } });
    const note = await rig.shown(1);
    expect(note.markdown).toMatch(/^Mail to email@work from `Anna`/);
    await rig.press(note, 'Reply');
    expect(await rig.writes(rig.says('At one.'))).toBe(true);
    expect((await rig.shown(2)).markdown).toMatch(/^To be sent from email@work to `anna1@/);
  });

  test('that is long is summarised once, and shown again without another call', async () => {
    await using rig = await makeRig();
    const mail = rig.mail(1, { text: `Subject: Lunch?\n\n${LONG}` });
    await rig.arrives(mail);
    const note = await rig.shown(1);
    expect(note.markdown).toContain('> `Anna wants lunch on Friday.`');
    expect(note.markdown).not.toContain('spring');
    const payer = { chat: mail.chat, sender: mail.sender, isUnseen: true };
    expect(rig.read).toMatchObject([{ text: LONG.trim(), subject: 'Lunch?', payer }]);
    await rig.press(note, 'Snooze 1 h');
    await rig.restart();
    await rig.clock.advance(HOUR);
    expect((await rig.shown(2)).markdown).toContain('Anna wants lunch');
    expect(rig.read).toHaveLength(1);
  });

  test('is shown with its first lines where a summary fails, is not paid or takes long', async () => {
    await using rig = await makeRig();
    const long = (n: number) => rig.mail(n, { text: LONG });
    rig.edge.summarise = async () => {
      throw new Error('no model');
    };
    await rig.arrives(long(1));
    expect((await rig.shown(1)).markdown).toMatch(/no model answered\. Its first lines:\n> `It is/);
    rig.edge.summarise = async () => ({ kind: 'missing', because: 'budget' });
    await rig.arrives(long(2));
    expect((await rig.shown(2)).markdown).toMatch(/budget is used up\. Its first lines:\n> `It is/);
    rig.edge.summarise = () => new Promise(() => undefined);
    await rig.arrives(long(3));
    await rig.arrives(rig.mail(4));
    expect((await rig.shown(3)).markdown).toContain('Where do we eat?');
    await rig.restart();
    await expect.poll(() => rig.read.length).toBe(4);
    await rig.clock.advance(MINUTE);
    expect((await rig.shown(4)).markdown).toContain('no model answered');
  });

  test('is marked where nothing proves its sender', async () => {
    await using rig = await makeRig();
    const sender = { kind: 'person', id: userId('boss@x.test'), verified: 'unverified' } as const;
    await rig.arrives(rig.mail(1, { sender }));
    expect((await rig.shown(1)).markdown).toContain('**unverified');
  });

  test('gets the dictated answer in its thread, once, after it was shown again', async () => {
    await using rig = await makeRig();
    const mail = rig.mail(1);
    await rig.arrives(mail);
    expect(await rig.writes(rig.says('for the agent'))).toBe(false);
    expect(await rig.press(await rig.shown(1), 'Reply')).toContain('anna1@person.test');
    const words = rig.says('At Luigi, at one.');
    expect(await rig.writes(words)).toBe(true);
    const draft = await rig.shown(2);
    expect(draft.markdown).toContain('> At Luigi, at one.');
    expect(await rig.mails()).toEqual([]);
    expect(await rig.writes(words)).toBe(true);
    expect(await rig.writes(rig.says('for the agent again'))).toBe(false);
    expect(await rig.press(draft, 'Send')).toMatch(/^On its way/);
    expect(await rig.press(draft, 'Send')).toMatch(/no longer/);
    expect(await rig.mails()).toMatchObject([
      { chat: mail.chat, markdown: 'At Luigi, at one.', replyTo: mail.id, isDictated: true },
    ]);
    await rig.restart();
    await rig.arrives(mail);
    await rig.arrives(rig.mail(2));
    expect((await rig.shown(3)).markdown).toContain('anna2@');
    expect(await rig.mails()).toHaveLength(1);
  });

  test('waits for the answer over a restart, and can be edited or dropped', async () => {
    await using rig = await makeRig();
    await rig.arrives(rig.mail(1));
    await rig.press(await rig.shown(1), 'Reply');
    await rig.restart();
    await rig.writes(rig.says('frist'));
    await rig.press(await rig.shown(2), 'Edit');
    await rig.writes(rig.says('first'));
    const draft = await rig.shown(3);
    expect(draft.markdown).toContain('> first');
    await rig.restart();
    expect(await rig.press(draft, 'Drop')).toMatch(/Nothing was sent/);
    expect((await rig.shown(4)).markdown).toContain('Where do we eat?');
    expect(await rig.mails()).toEqual([]);
  });

  test('takes two messages handed over together for one answer', async () => {
    await using rig = await makeRig();
    await rig.arrives(rig.mail(1));
    await rig.press(await rig.shown(1), 'Reply');
    const both = [rig.says('one'), rig.says('two')];
    const taken = await Promise.all(both.map((each) => rig.questions.heard(each, 'owner')));
    for (const take of taken) await take?.();
    await expect
      .poll(async () => (await rig.notes()).at(-1)?.markdown, { timeout: 45_000 })
      .toContain('> one\n> two');
    await rig.press((await rig.notes()).at(-1) as OutboundMessage, 'Send');
    expect((await rig.mails()).map(({ markdown }) => markdown)).toEqual(['one\ntwo']);
  });

  test('comes again when nothing was written for half an hour', async () => {
    await using rig = await makeRig();
    await rig.arrives(rig.mail(1));
    await rig.press(await rig.shown(1), 'Reply');
    await rig.clock.advance(31 * MINUTE);
    await rig.shown(2);
    expect(await rig.writes(rig.says('too late'))).toBe(false);
  });

  test('is archived once, and the owner hears where that fails', async () => {
    await using rig = await makeRig();
    await rig.arrives(rig.mail(1));
    expect(await rig.press(await rig.shown(1), 'Archive')).toBe('Archiving `Lunch?`.');
    await expect.poll(() => rig.archived).toEqual(['email:default:1']);
    rig.edge.archiveFails = new ArchiveError('no_archive', 'the mailbox has no archive folder');
    await rig.arrives(rig.mail(2));
    await rig.press(await rig.shown(2), 'Archive');
    await expect
      .poll(async () => (await rig.notes()).at(-1)?.markdown)
      .toBe('I could not archive `Lunch?`: the mailbox has no archive folder.');
    await rig.restart();
    expect(rig.archived).toHaveLength(1);
  });

  test('gets the words of the owner who chose Reply for it last', async () => {
    await using rig = await makeRig();
    await rig.arrives(rig.mail(1));
    const first = await rig.shown(1);
    await rig.arrives(rig.mail(2));
    await rig.press(await rig.shown(2), 'Reply');
    await rig.clock.advance(MINUTE);
    await rig.press(first, 'Reply');
    await rig.writes(rig.says('Gladly.'));
    expect((await rig.shown(3)).markdown).toContain('To be sent to `anna1@person.test`');
    await rig.clock.advance(MINUTE);
    await rig.writes(rig.says('Never.'));
    expect((await rig.shown(4)).markdown).toContain('To be sent to `anna2@person.test`');
  });

  test('is shown also where nothing can be done for an earlier one', async () => {
    await using rig = await makeRig();
    await rig.arrives(rig.mail(1));
    rig.edge.archiveFails = new Error('the disk is full');
    await rig.press(await rig.shown(1), 'Archive');
    await rig.arrives(rig.mail(2));
    await expect
      .poll(async () => {
        await rig.clock.advance(MINUTE);
        return (await rig.notes()).length;
      })
      .toBe(2);
  });

  test('put off comes again after an hour, or tomorrow at nine, over a restart', async () => {
    await using rig = await makeRig();
    await rig.clock.advance(Date.parse('2026-01-15T12:00:00Z') - rig.clock.now());
    await rig.arrives(rig.mail(1));
    await rig.press(await rig.shown(1), 'Snooze 1 h');
    await rig.restart();
    await rig.clock.advance(59 * MINUTE);
    expect(await rig.notes()).toHaveLength(1);
    await rig.clock.advance(MINUTE);
    await rig.press(await rig.shown(2), 'Tomorrow 9:00');
    await rig.restart();
    await rig.clock.advance(Date.parse('2026-01-16T07:59:00Z') - rig.clock.now());
    expect(await rig.notes()).toHaveLength(2);
    await rig.clock.advance(MINUTE);
    await rig.shown(3);
  });

  test('is one of at most twenty in an hour; the others are counted in one line', async () => {
    await using rig = await makeRig();
    for (let n = 0; n < 57; n += 1) await rig.arrives(rig.mail(n, n < 30 ? { text: LONG } : {}));
    await rig.shown(20);
    expect(rig.read).toHaveLength(20);
    await rig.restart();
    await rig.arrives(rig.mail(57));
    await expect.poll(rig.waiting).toBe(0);
    await rig.clock.advance(HOUR);
    await expect.poll(async () => (await rig.notes()).at(-1)?.markdown).toMatch(/^38 more mails/);
    await rig.arrives(rig.mail(58));
    await rig.shown(21);
    expect(await rig.notes()).toHaveLength(22);
  });
});

describe('whose mails the owner answers', () => {
  const admit = (role: 'owner' | 'trusted' | 'guest'): SettledVerdict => ({ kind: 'admit', role });
  const blocked: SettledVerdict = {
    ...{ kind: 'refuse', gate: 'sender is blocked', isUnknown: false, isBlocked: true },
  };
  const machinery: SettledVerdict = { kind: 'admit', role: undefined };
  test.each<[BridgeMode, string, SettledVerdict, boolean]>([
    ['off', 'a stranger', UNKNOWN_SENDER, false],
    ['unlisted', 'a stranger', UNKNOWN_SENDER, true],
    ['unlisted', 'somebody let in', admit('trusted'), false],
    ['unlisted', 'somebody blocked', blocked, false],
    ['all', 'a stranger', UNKNOWN_SENDER, true],
    ['all', 'somebody let in', admit('trusted'), true],
    ['all', 'a guest', admit('guest'), true],
    ['all', 'the owner', admit('owner'), false],
    ['all', 'somebody blocked', blocked, false],
    ['all', 'our own machinery', machinery, false],
  ])('with %s, of %s', async (mode, _who, verdict, expected) => {
    await using rig = await makeRig();
    rig.edge.mode = mode;
    expect(await rig.arrives(rig.mail(1), verdict)).toBe(expected);
  });
});
