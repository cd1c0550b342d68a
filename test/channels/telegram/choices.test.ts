// Choices as buttons: what stands below a message, what a press brings, and what becomes of it.

import { describe, expect, test } from 'vitest';
import { nativeId } from '../../../src/kernel/message/ids.ts';
import { type Clock, systemClock } from '../../../src/lib/time/clock.ts';
import { sending } from '../../contract/channel.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { ALICE, answer, chatOf, seenBy, startRig } from './rig.ts';

const CHOICES = [
  { label: 'Allow once', token: 'tok-allow' },
  { label: 'Block', token: 'tok-block' },
];
const BOB = 778;
const GROUP = -1001;

async function asked(chat = ALICE, clock: Clock = systemClock) {
  const rig = await startRig({ clock });
  rig.start();
  rig.api.say(ALICE, 'hello', chat === ALICE ? {} : { chatId: chat });
  await rig.host.until((host) => host.entries.length === 1);
  const question = answer('May I?', { choices: CHOICES, chat: chatOf(chat) });
  const receipt = await rig.channel.send(question, sending());
  return { rig, question, receipt };
}

describe('messages of ours on Telegram', () => {
  test('one that is too old to be deleted stays and is named, the others go', async () => {
    const { rig } = await asked();
    await using _ = rig;
    const context = sending();
    await rig.channel.send(answer('One.'), context);
    await rig.channel.send(answer('Two.'), context);
    rig.api.age(Number(context.parts[0]));
    const signal = AbortSignal.timeout(45_000);
    const retracted = rig.channel.retracting?.retract(chatOf(ALICE), context.parts, signal);
    await expect(retracted).rejects.toMatchObject({ remedy: { kind: 'never' } });
    expect(seenBy(rig.api, ALICE)).toEqual(['May I?', 'One.']);
  });

  test('a sign is set on a message and taken away again', async () => {
    const rig = await startRig();
    await using _ = rig;
    rig.start({ ackReaction: '👀' });
    rig.api.say(ALICE, 'hello');
    const { message } = await rig.host.until((host) => host.entries[0]);
    const sign = () => rig.api.chat(ALICE).messages[0]?.reaction;
    const { reactions } = rig.channel;
    expect(reactions?.acknowledgement).toBe('👀');
    await reactions?.react(message.id, '👀', AbortSignal.timeout(45_000));
    expect(sign()).toBe('👀');
    await reactions?.react(message.id, undefined, AbortSignal.timeout(45_000));
    expect(sign()).toBeUndefined();
  });
});

describe('choices on Telegram', () => {
  test('a press comes with the token and the label, under the id of who pressed', async () => {
    const { rig } = await asked();
    await using _ = rig;
    rig.api.press({ id: BOB, first_name: 'Bob' }, ALICE, 'Block');
    await rig.host.until((host) => host.entries.length === 2);
    expect(rig.host.entries.at(-1)).toMatchObject({
      kind: 'queue',
      message: {
        press: 'tok-block',
        text: 'Block',
        addressing: 'direct',
        chat: chatOf(ALICE),
        sender: { kind: 'person', id: String(BOB), verified: 'verified' },
      },
    });
    await rig.api.waitFor(() => rig.api.pressed.size === 0);
  });

  test('the button is let go only after the press is stored', async () => {
    const { rig } = await asked();
    await using _ = rig;
    const stored = Promise.withResolvers<void>();
    rig.host.beforeStore = () => stored.promise;
    rig.api.press(ALICE, ALICE, 'Allow once');
    await rig.api.waitFor(() => rig.api.unconfirmed.length === 1);
    expect(rig.api.pressed.size).toBe(1);
    stored.resolve();
    await rig.api.waitFor(() => rig.api.pressed.size === 0);
  });

  test('what came of a press is shown at the button, as plain words that fit there', async () => {
    const { rig } = await asked();
    await using _ = rig;
    for (const words of ['**Allowed** once.', `Sent to ${'anna '.repeat(60)}\n\nMore.`]) {
      rig.host.outcome = words;
      rig.api.press(ALICE, ALICE, 'Allow once');
      await rig.api.waitFor(() => rig.api.pressed.size === 0);
    }
    const [short, long = ''] = rig.api.toasts;
    expect(short).toBe('Allowed once.');
    expect(long).toMatch(/^Sent to anna .*…$/);
    expect(long.length).toBeLessThanOrEqual(200);
    expect(rig.api.violations).toEqual([]);
  });

  test('the button is let go after three seconds whatever holds the press up', async () => {
    const clock = createMovableClock();
    const { rig } = await asked(ALICE, clock);
    await using _ = rig;
    rig.host.isFull = true;
    rig.api.press(ALICE, ALICE, 'Allow once');
    await rig.host.until(({ statuses }) => statuses.at(-1)?.kind === 'degraded');
    expect(rig.api.pressed.size).toBe(1);
    await clock.advance(3000);
    await rig.api.waitFor(() => rig.api.pressed.size === 0);
    expect(rig.api.toasts).toEqual(['']);
    rig.host.isFull = false;
  });

  test('two presses of one button are two messages, a repeated update is one', async () => {
    const { rig } = await asked();
    await using _ = rig;
    const first = rig.api.press(ALICE, ALICE, 'Allow once');
    await rig.host.until((host) => host.entries.length === 2);
    const { update_id: _id, ...again } = first;
    rig.api.offer(again);
    rig.api.press(ALICE, ALICE, 'Allow once');
    await rig.host.until((host) => host.entries.length === 3);
    expect(rig.host.duplicates).toBe(1);
  });

  test('a press below a message too old to show still brings its token', async () => {
    const { rig } = await asked();
    await using _ = rig;
    rig.api.press(ALICE, ALICE, 'Block', { isOld: true });
    await rig.host.until((host) => host.entries.length === 2);
    expect(rig.host.entries.at(-1)?.message).toMatchObject({ press: 'tok-block', text: '' });
  });

  test('in a group a press is for us, and knows the group', async () => {
    const { rig } = await asked(GROUP);
    await using _ = rig;
    rig.api.group(GROUP);
    rig.api.press(ALICE, GROUP, 'Block');
    await rig.host.until((host) => host.entries.length === 2);
    expect(rig.host.entries.at(-1)?.message).toMatchObject({
      addressing: 'direct',
      group: { ids: [String(GROUP)] },
    });
  });

  test('the buttons can be taken away, also twice, and the text stays', async () => {
    const { rig, receipt } = await asked();
    await using _ = rig;
    const [part] = receipt.nativeIds;
    const signal = AbortSignal.timeout(45_000);
    for (let time = 0; time < 2 && part !== undefined; time += 1) {
      await rig.channel.closeChoices?.(chatOf(ALICE), part, signal);
    }
    const seen = rig.api.chat(ALICE).messages.at(-1);
    expect(seen).toMatchObject({ text: 'May I?', buttons: undefined });
  });

  test('what came of a question stands below its text, and nothing is left to press', async () => {
    const { rig, receipt } = await asked();
    await using _ = rig;
    const [part = nativeId('')] = receipt.nativeIds;
    const signal = AbortSignal.timeout(45_000);
    const now = 'May I?\n\n**Decided elsewhere:** yes.';
    for (let time = 0; time < 2; time += 1) {
      await rig.channel.closeChoices?.(chatOf(ALICE), part, signal, now);
    }
    const seen = rig.api.chat(ALICE).messages.at(-1);
    expect(seen).toMatchObject({ text: 'May I?\n\nDecided elsewhere: yes.', buttons: undefined });
  });

  test.each([
    ['no data', { data: undefined }],
    ['data that is no token', { data: 'x y' }],
    ['no message', { message: undefined, inline_message_id: '5' }],
    ['no sender', { from: undefined }],
    ['a misshapen chat', { message: { message_id: 3, chat: 'x' } }],
  ])('an update with %s is recorded and passed over', async (_name, change) => {
    const { rig } = await asked();
    await using _ = rig;
    const from = { id: ALICE, first_name: 'A', is_bot: false };
    const message = { message_id: 3, chat: { id: ALICE, type: 'private' }, date: 0 };
    const query = { id: '77', from, message, data: 'tok', ...change };
    rig.api.offer({ callback_query: query });
    await rig.host.until((host) => host.entries.length === 2);
    expect(rig.host.entries.at(-1)).toMatchObject({
      kind: 'record',
      gate: 'update of kind callback_query',
    });
  });
});
