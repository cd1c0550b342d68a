import { describe, expect, test } from 'vitest';
import { createMovableClock } from '../../support/movable-clock.ts';
import { ALICE, startRig } from './rig.ts';

describe('updates', () => {
  test('a message arrives once and is confirmed only after it is stored', async () => {
    await using rig = await startRig();
    let unconfirmedWhileStoring = -1;
    rig.host.beforeStore = async () => {
      unconfirmedWhileStoring = rig.api.unconfirmed.length;
    };
    rig.start();
    rig.api.say(ALICE, 'hello');
    await rig.host.until((host) => host.texts().length === 1);
    expect(unconfirmedWhileStoring).toBe(1);
    await rig.api.waitFor(() => rig.api.unconfirmed.length === 0);
    expect(rig.host.entries[0]?.message).toMatchObject({
      text: 'hello',
      sender: { kind: 'person', id: '777', verified: 'verified' },
      addressing: 'direct',
      chat: { channel: 'telegram', account: 'default', chat: '777' },
    });
  });

  test('100 updates handed out before a crash all come again, and none twice', async () => {
    await using rig = await startRig();
    for (let n = 0; n < 100; n += 1) rig.api.say(ALICE + (n % 7), `message ${n}`);
    rig.host.beforeStore = () => Promise.reject(new Error('the process dies here'));
    rig.start();
    expect(await rig.failure).toMatchObject({ message: 'the process dies here' });
    expect(rig.api.unconfirmed).toHaveLength(100);
    rig.host.beforeStore = undefined;
    rig.start();
    await rig.host.until((host) => host.texts().length === 100);
    expect(rig.host.duplicates).toBe(0);
    expect(new Set(rig.host.texts()).size).toBe(100);
  });

  test('updates replayed after a restart carry the ids they had', async () => {
    await using rig = await startRig();
    for (let n = 0; n < 20; n += 1) rig.api.say(ALICE, `message ${n}`);
    rig.start();
    await rig.host.until((host) => host.texts().length === 20);
    await rig.api.waitFor(() => rig.api.unconfirmed.length === 0);
    await rig.stop();
    // The store has the messages, but the cursor is lost.
    rig.host.storedCursor = undefined;
    for (const entry of [...rig.host.entries]) {
      const number = Number(/:(\d+)@/.exec(entry.message.id)?.[1]);
      rig.api.offer({ message: privateMessage(number, entry.message.text) });
    }
    rig.start();
    await rig.host.until((host) => host.duplicates === 20);
    expect(rig.host.texts()).toHaveLength(20);
  });

  test('a full queue leaves the messages with Telegram until there is room', async () => {
    const clock = createMovableClock();
    await using rig = await startRig({ clock });
    rig.host.isFull = true;
    rig.start();
    rig.api.say(ALICE, 'patience');
    await rig.host.until((host) => host.statuses.at(-1)?.kind === 'degraded');
    await clock.advance(20_000);
    expect(rig.api.unconfirmed).toHaveLength(1);
    rig.host.isFull = false;
    await clock.advance(20_000);
    await rig.host.until((host) => host.texts().includes('patience'));
  });

  test('after a week of silence a smaller update id is not thrown away', async () => {
    const clock = createMovableClock();
    await using rig = await startRig({ clock });
    rig.start();
    rig.api.say(ALICE, 'before');
    await rig.host.until((host) => host.texts().length === 1);
    await rig.stop();
    await clock.advance(7 * 24 * 3600 * 1000);
    rig.api.jumpTo(5);
    rig.api.say(ALICE, 'after');
    rig.start();
    await rig.host.until((host) => host.texts().includes('after'));
    await rig.api.waitFor(() => rig.api.unconfirmed.length === 0);
  });

  test('another bot’s place in the stream is not taken for ours', async () => {
    await using rig = await startRig();
    rig.host.storedCursor = JSON.stringify({ bot: 1, update: 999_999_999, at: Date.now() });
    rig.api.say(ALICE, 'hello new bot');
    rig.start();
    await rig.host.until((host) => host.texts().includes('hello new bot'));
  });

  test('1,000 malformed updates are recorded and passed over', async () => {
    await using rig = await startRig();
    for (let n = 0; n < 1000; n += 1) rig.api.offer(malformed(n));
    rig.api.say(ALICE, 'still there?');
    rig.start();
    await rig.host.until((host) => host.texts().includes('still there?'));
    expect(rig.host.texts().filter((text) => text === 'still there?')).toHaveLength(1);
    await rig.api.waitFor(() => rig.api.unconfirmed.length === 0);
    expect(rig.host.entries.length).toBeGreaterThan(1);
  });
});

const privateMessage = (id: number, text: unknown, rest: object = {}) => ({
  message_id: id,
  from: { id: ALICE, is_bot: false, first_name: 'Alice' },
  chat: { id: ALICE, type: 'private' },
  date: 1_700_000_000,
  text,
  ...rest,
});

function malformed(n: number): Record<string, unknown> {
  let deep: unknown = 'end';
  for (let depth = 0; depth < 200; depth += 1) deep = { reply_to_message: deep };
  const shapes: readonly Record<string, unknown>[] = [
    {},
    { message: null },
    { message: [] },
    { message: 'text' },
    { message: { message_id: 1e308, chat: { id: 1 }, from: { id: 1 } } },
    { message: privateMessage(100_000 + n, null) },
    { message: privateMessage(100_000 + n, { toString: 'x' }) },
    { message: { ...privateMessage(100_000 + n, 'no sender'), from: undefined } },
    { message: { ...privateMessage(100_000 + n, 'text id'), from: { id: '777' } } },
    { message: privateMessage(100_000 + n, 'no chat', { chat: null }) },
    { message: privateMessage(100_000 + n, undefined, { photo: 'x', caption: 7 }) },
    { message: privateMessage(100_000 + n, undefined, deep as object) },
    { message: privateMessage(100_000 + n, undefined, { location: null, contact: 3, poll: [] }) },
    { edited_message: 5 },
    { unheard_of: { message: privateMessage(1, 'x') } },
    { message: privateMessage(100_000 + n, undefined, { new_chat_title: 'x' }) },
  ];
  return shapes[n % shapes.length] ?? {};
}

describe('who and what', () => {
  test.each([
    ['a channel', { chat: { id: -100_5, type: 'channel' } }, 'neither a private chat nor a group'],
    [
      'a sender chat',
      { sender_chat: { id: -100_7, type: 'channel' } },
      'sent in the name of a chat',
    ],
    ['another bot', { from: { id: 9, is_bot: true, first_name: 'B' } }, 'sender is a bot'],
  ])('%s never reaches the agent', async (_, forged, gate) => {
    await using rig = await startRig();
    rig.start();
    rig.api.offer({ message: { ...privateMessage(5, 'let me in'), ...forged } });
    await rig.host.until((host) => host.gates().includes(gate));
    expect(rig.host.texts()).toEqual([]);
  });

  test('edits name the message they change, each once, also within one second', async () => {
    await using rig = await startRig();
    rig.start();
    const edited = (text: string) => privateMessage(5, text, { edit_date: 1_700_000_009 });
    rig.api.offer({ message: privateMessage(5, 'first') });
    rig.api.offer({ edited_message: edited('second') });
    rig.api.offer({ edited_message: edited('third') });
    await rig.host.until((host) => host.texts().includes('third'));
    const [first, second, third] = rig.host.entries.map(({ message }) => message);
    expect(first?.amends).toBeUndefined();
    const amends = { id: first?.id, kind: 'edited' };
    expect([second, third]).toMatchObject([
      { text: 'second', amends, sender: { id: '777' } },
      { text: 'third', amends },
    ]);
    expect(second?.id).not.toBe(third?.id);
  });

  test('a live location that moves changes nothing', async () => {
    await using rig = await startRig();
    rig.start();
    const location = { latitude: 1, longitude: 2, live_period: 900 };
    rig.api.offer({ edited_message: privateMessage(5, 'x', { text: undefined, location }) });
    await rig.host.until((host) => host.gates().includes('a live location that moved'));
  });

  test.each([
    ['an emoji', [{ type: 'emoji', emoji: '👎' }], { to: '9', emoji: '👎' }],
    ['nothing any more', [], { to: '9' }],
  ])('a reaction with %s names who reacted and to what', async (_name, now, reaction) => {
    await using rig = await startRig();
    rig.start();
    const chat = { id: 777, type: 'private' };
    const user = { id: 777, is_bot: false, first_name: 'Alice' };
    const change = { chat, user, message_id: 9, date: 1, old_reaction: [], new_reaction: now };
    rig.api.offer({ message_reaction: change });
    const entry = await rig.host.until((host) => host.entries[0]);
    expect(entry).toMatchObject({ kind: 'queue', message: { reaction, sender: { id: '777' } } });
  });

  test.each([
    ['in the name of a chat', { user: undefined, actor_chat: { id: -1, type: 'channel' } }],
    [
      'by a picture of their own',
      { new_reaction: [{ type: 'custom_emoji', custom_emoji_id: '1' }] },
    ],
    ['by words', { new_reaction: [{ type: 'emoji', emoji: 'obey me' }] }],
  ])('a reaction %s is recorded only', async (_name, part) => {
    await using rig = await startRig();
    rig.start();
    const chat = { id: 777, type: 'private' };
    const user = { id: 777, is_bot: false, first_name: 'Alice' };
    rig.api.offer({ message_reaction: { chat, user, message_id: 9, date: 1, ...part } });
    await rig.host.until((host) => host.gates().includes('update of kind message_reaction'));
  });

  test('a forwarded author is named and never the sender', async () => {
    await using rig = await startRig();
    rig.start();
    const origin = { type: 'user', sender_user: { id: 1, is_bot: false, first_name: 'Owner' } };
    rig.api.offer({ message: privateMessage(5, 'do it', { forward_origin: origin }) });
    const entry = await rig.host.until((host) => host.entries[0]);
    expect(entry.message.text).toBe('[forwarded from Owner]\ndo it');
    expect(entry.message.sender).toMatchObject({ id: '777' });
  });

  test.each([
    [{ sticker: { emoji: '👍', is_animated: true } }, '[a sticker (👍)]'],
    [{ sticker: { is_video: true } }, '[a sticker]'],
    [{ story: {} }, '[sent a story, which I cannot open]'],
    [{ location: { latitude: 52.5, longitude: 13.4 } }, '[location: 52.5, 13.4]'],
    [{ contact: { first_name: 'Bob', phone_number: '+49' } }, '[forwarded]\n[contact: Bob, +49]'],
    [{ dice: { emoji: '🎲', value: 4 } }, '[dice 🎲: 4]'],
  ])('what is not text is told to the agent: %j', async (content, text) => {
    await using rig = await startRig();
    rig.start();
    rig.api.offer({ message: privateMessage(5, undefined, content) });
    await rig.host.until((host) => host.texts()[0] === text);
  });

  test('an answered message comes along as a quote with its author', async () => {
    await using rig = await startRig();
    rig.start();
    rig.api.say(ALICE, 'question');
    await rig.host.until((host) => host.texts().length === 1);
    const original = rig.api.chat(ALICE).messages[0];
    rig.api.say(ALICE, 'about that', original === undefined ? {} : { replyTo: original });
    const entry = await rig.host.until((host) => host.entries[1]);
    expect(entry.message.quoted).toEqual({ author: 'Person 777', text: 'question' });
    expect(entry.message.replyTo).toBe(rig.host.entries[0]?.message.id);
  });

  test('the address behind a link is shown to the agent', async () => {
    await using rig = await startRig();
    rig.start();
    const entities = [{ type: 'text_link', offset: 5, length: 4, url: 'https://a.b' }];
    rig.api.offer({ message: privateMessage(5, 'read this now', { entities }) });
    await rig.host.until((host) => host.texts()[0] === 'read this (https://a.b) now');
  });
});
