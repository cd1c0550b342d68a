// What every channel promises, whatever its platform. A channel's own test gives a rig: the channel
// under way against its simulator, and how a person on that platform writes and what they see.

import { describe, expect, type TestContext, test } from 'vitest';
import type { Channel } from '../../src/channels/channel.ts';
import type { SendContext } from '../../src/kernel/bus/bus.ts';
import { DeliveryError } from '../../src/kernel/message/errors.ts';
import { messageId, type NativeId, nativeId } from '../../src/kernel/message/ids.ts';
import type { ChatRef, OutboundMessage } from '../../src/kernel/message/message.ts';
import { withNumbers } from '../../src/kernel/message/message.ts';
import type { MemoryHost } from '../support/memory-host.ts';
import { filesContract, type SeenFile } from './channel-files.ts';

export type ChannelRig = AsyncDisposable & {
  readonly channel: Channel;
  readonly host: MemoryHost;
  /** A chat in which the person has written already. */
  readonly chat: ChatRef;
  personWrites(text: string): Promise<void> | void;
  /** What stands in the person's chat from us, oldest first, as text without markup. */
  personSees(): Promise<readonly string[]> | readonly string[];
  /** Presses what has that label; only where the platform has something to press. */
  personPresses?(label: string): Promise<void> | void;
  /** The files that stand in the person's chat from us, oldest first. */
  personSeesFiles?(): Promise<readonly SeenFile[]> | readonly SeenFile[];
  /** Ends `run` as a shutdown does; resolves when it has returned. */
  stop(): Promise<void>;
  /** Lets waits between tries pass where the rig moves time by hand. */
  passTime?(): Promise<void>;
  /** The next send is refused for good by the platform, e.g. because the person blocked us. */
  refuseNextSend?(): void;
};

/**
 * Starts a rig with what the test needs of it as `can`; skips the test where the channel lacks that,
 * without a start where an earlier rig of the channel has shown it.
 */
export type StartWith = <T>(
  context: TestContext,
  absent: string,
  of: (rig: ChannelRig) => T | undefined,
) => Promise<ChannelRig & { readonly can: T }>;

const LONG_WAIT_MS = 45_000;

export function channelContract(name: string, startRig: () => Promise<ChannelRig>): void {
  let last: ChannelRig | undefined;
  const start = async () => {
    last = await startRig();
    return last;
  };
  const startWith: StartWith = async (context, absent, of) => {
    if (last !== undefined && of(last) === undefined) return context.skip(absent);
    const rig = await start();
    const can = of(rig);
    if (can !== undefined) return Object.assign(rig, { can });
    await rig[Symbol.asyncDispose]();
    return context.skip(absent);
  };
  describe(`${name} keeps the channel contract`, () => {
    receiveContract(start);
    sendContract(start, startWith);
    editingContract(startWith);
    choicesContract(startWith);
    retractingContract(startWith);
    filesContract(startWith);
  });
}

function receiveContract(startRig: () => Promise<ChannelRig>) {
  test('reports running with the time of its last sign of life', async () => {
    await using rig = await startRig();
    const status = await rig.host.until(({ statuses }) =>
      statuses.find(({ kind }) => kind === 'running'),
    );
    expect(status).toMatchObject({ kind: 'running', activeAt: expect.any(Number) });
  });

  test('hands over what a person writes, once, with a cursor or an id that survives', async () => {
    await using rig = await startRig();
    await rig.personWrites('hello there');
    await rig.host.until((host) => host.texts().includes('hello there'));
    expect(rig.host.texts().filter((text) => text === 'hello there')).toHaveLength(1);
    const { message } = rig.host.entries.at(-1) ?? {};
    expect(message?.id.startsWith(`${rig.channel.name}:${rig.channel.account}:`)).toBe(true);
    expect(message?.chat).toEqual(rig.chat);
    expect(message?.sender.kind).toBe('person');
  });

  test('keeps what a full queue refuses until there is room', async () => {
    await using rig = await startRig();
    rig.host.isFull = true;
    const offered = rig.host.until(() => rig.host.statuses.at(-1)?.kind === 'degraded');
    await rig.personWrites('while full');
    await offered;
    expect(rig.host.texts()).not.toContain('while full');
    rig.host.isFull = false;
    await rig.passTime?.();
    await rig.host.until((host) => host.texts().includes('while full'), LONG_WAIT_MS);
  });

  test('ends when it is stopped', async () => {
    await using rig = await startRig();
    await rig.stop();
  });
}

function sendContract(startRig: () => Promise<ChannelRig>, startWith: StartWith) {
  test('delivers an answer and records every part as it goes', async () => {
    await using rig = await startRig();
    const context = sending();
    const receipt = await rig.channel.send(outbound(rig.chat, 'An **answer**.'), context);
    expect(await rig.personSees()).toEqual(['An answer.']);
    expect(receipt.nativeIds).toEqual(context.parts);
    expect(context.parts.length).toBeGreaterThan(0);
  });

  test('delivers every word of a long answer', async () => {
    await using rig = await startRig();
    const words = Array.from({ length: 3000 }, (_, index) => `word${index}`);
    await rig.channel.send(outbound(rig.chat, words.join(' ')), sending());
    const seen = (await rig.personSees()).join(' ').split(/\s+/);
    expect(seen).toEqual(words);
  });

  test('does not send again what an earlier try delivered', async () => {
    await using rig = await startRig();
    const words = Array.from({ length: 3000 }, (_, index) => `word${index}`).join(' ');
    const first = sending();
    await rig.channel.send(outbound(rig.chat, words), first);
    const before = (await rig.personSees()).length;
    const again = sending({ attempt: 2, sentParts: first.parts });
    const receipt = await rig.channel.send(outbound(rig.chat, words), again);
    expect(await rig.personSees()).toHaveLength(before);
    expect(receipt.nativeIds).toEqual(first.parts);
  });

  test('sends nothing where there is nothing to say', async () => {
    await using rig = await startRig();
    const receipt = await rig.channel.send(outbound(rig.chat, ' \n\n '), sending());
    expect(receipt.nativeIds).toEqual([]);
    expect(await rig.personSees()).toEqual([]);
  });

  test('calls a refusal for good what it is', async (context) => {
    const absent = 'the rig cannot refuse';
    await using rig = await startWith(context, absent, (one) => one.refuseNextSend);
    rig.can();
    const error = await rig.channel.send(outbound(rig.chat, 'x'), sending()).catch((e) => e);
    expect(error).toBeInstanceOf(DeliveryError);
    expect(error).toMatchObject({ certainty: 'not_sent', remedy: { kind: 'never' } });
  });
}

function editingContract(startWith: StartWith) {
  const editing = ({ channel }: ChannelRig) => channel.editing;

  test('a draft becomes the answer and nothing is left of it', async (context) => {
    await using rig = await startWith(context, 'this channel cannot edit', editing);
    const signal = AbortSignal.timeout(LONG_WAIT_MS);
    const draft = await rig.can.place(rig.chat, 'The beginning', { signal });
    await rig.can.edit(rig.chat, draft, 'The beginning of **an ans', signal);
    await rig.can.edit(rig.chat, draft, 'The beginning of **an ans', signal);
    const receipt = await rig.channel.send(
      outbound(rig.chat, 'The beginning of **an answer**.'),
      sending({ draft }),
    );
    expect(receipt.nativeIds).toEqual([draft]);
    expect(await rig.personSees()).toEqual(['The beginning of an answer.']);
  });

  test('a draft placed again under its name is the one that stands there', async (context) => {
    const absent = 'this channel cannot edit, or the platform cannot tell';
    await using rig = await startWith(context, absent, ({ channel }) =>
      channel.onUnknown === 'idempotent' ? channel.editing : undefined,
    );
    const named = { name: 'turn#7', signal: AbortSignal.timeout(LONG_WAIT_MS) };
    const draft = await rig.can.place(rig.chat, 'The beginning', named);
    expect(await rig.can.place(rig.chat, 'The beginning', named)).toBe(draft);
    expect(await rig.personSees()).toEqual(['The beginning']);
  });

  test('a draft can be taken away', async (context) => {
    await using rig = await startWith(context, 'this channel cannot edit', editing);
    const signal = AbortSignal.timeout(LONG_WAIT_MS);
    const draft = await rig.can.place(rig.chat, 'Never mind', { signal });
    await rig.can.remove(rig.chat, draft, signal);
    await rig.can.remove(rig.chat, draft, signal);
    expect(await rig.personSees()).toEqual([]);
  });
}

function choicesContract(startWith: StartWith) {
  const asked = (rig: ChannelRig): OutboundMessage => ({
    ...outbound(rig.chat, 'May I?'),
    choices: [
      { label: 'Allow once', token: 'tok_Allow-1' },
      { label: 'Block', token: 'tok_Block-2' },
    ],
  });

  test('a press comes as a message with its token and its label, once', async (context) => {
    const absent = 'this channel has no buttons';
    await using rig = await startWith(context, absent, ({ channel }) => channel.choices);
    await rig.channel.send(asked(rig), sending());
    await rig.personPresses?.('Block');
    const pressed = await rig.host.until(({ entries }) =>
      entries.find(({ message }) => message.press !== undefined),
    );
    expect(pressed.message).toMatchObject({
      press: 'tok_Block-2',
      text: 'Block',
      addressing: 'direct',
      chat: rig.chat,
    });
    expect(rig.host.entries.filter(({ message }) => message.press !== undefined)).toHaveLength(1);
  });

  test('a question that is closed says what came of it, and is closed once', async (context) => {
    const absent = 'nothing can be closed here';
    await using rig = await startWith(context, absent, ({ channel }) => channel.closeChoices);
    const { nativeIds } = await rig.channel.send(asked(rig), sending());
    const [part = nativeId('none')] = nativeIds;
    const signal = AbortSignal.timeout(LONG_WAIT_MS);
    for (let time = 0; time < 2; time += 1) {
      await rig.can(rig.chat, part, signal, 'May I?\n\n**Decided:** yes.');
    }
    const seen = (await rig.personSees()).map((text) => text.replace(/\s+/g, ' '));
    expect(seen).toEqual(['May I? Decided: yes.']);
  });

  test('where there are no buttons the labels stand in the text, numbered', async (context) => {
    await using rig = await startWith(context, 'this channel has buttons', ({ channel }) =>
      channel.choices === undefined ? 'labels' : undefined,
    );
    await rig.channel.send(withNumbers(asked(rig)), sending());
    const seen = (await rig.personSees()).join('\n');
    for (const text of ['May I?', '1. Allow once', '2. Block', 'number'])
      expect(seen).toContain(text);
  });
}

function retractingContract(startWith: StartWith) {
  test('what was sent can be taken away with all its parts, also twice', async (context) => {
    const absent = 'this channel cannot take anything away';
    await using rig = await startWith(context, absent, ({ channel }) => channel.retracting);
    const words = Array.from({ length: 3000 }, (_, index) => `word${index}`).join(' ');
    const { nativeIds } = await rig.channel.send(outbound(rig.chat, words), sending());
    const signal = AbortSignal.timeout(LONG_WAIT_MS);
    await rig.can.retract(rig.chat, nativeIds, signal);
    await rig.can.retract(rig.chat, nativeIds, signal);
    expect(await rig.personSees()).toEqual([]);
  });
}

const outbound = (chat: ChatRef, markdown: string): OutboundMessage => ({
  id: messageId('contract/0'),
  chat,
  markdown,
});

/** The bus's part in a send: it remembers which parts stand in the chat. */
export function sending(
  rest: Partial<SendContext> = {},
): SendContext & { readonly parts: readonly NativeId[] } {
  const parts: NativeId[] = [];
  return {
    signal: AbortSignal.timeout(LONG_WAIT_MS),
    attempt: 1,
    textAt: 0,
    sentParts: [],
    repeatsUnknown: false,
    requestBegins: async () => undefined,
    partSent: async (id) => void parts.push(id),
    ...rest,
    parts,
  };
}
