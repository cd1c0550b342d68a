// LocalChannels that are down, with time moved by hand: what waits goes out on another door once, and the
// owner hears in one line what came in meanwhile.

import { describe, expect, it, onTestFinished } from 'vitest';
import { createFallback, createOutages } from '../../src/features/health/index.ts';
import type { AccountName } from '../../src/kernel/message/ids.ts';
import {
  type ChannelName,
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
} from '../../src/kernel/message/ids.ts';
import type { InboundMessage, OutboundMessage } from '../../src/kernel/message/message.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { makePeopleRig, OWNER, type PeopleRig, person } from './people-rig.ts';

const MINUTE = 60_000;
const CHAT = channelName('chat');
const PHONE = channelName('phone');
const chatOn = (channel: ChannelName, chat: string) => ({
  channel,
  account: DEFAULT_ACCOUNT,
  chat: chatId(chat),
});

async function twoChannels() {
  const rig = await makePeopleRig();
  onTestFinished(() => rig[Symbol.asyncDispose]());
  await rig.say(OWNER, 'hello');
  const chat = chatOn(PHONE, '900');
  await rig.people.pairing.approve({ channel: 'phone', userId: '900', name: 'Olga' }, 'owner');
  await rig.say(person('900'), 'hello', { id: messageId('phone:default:900:1'), chat });
  const [one, other] = await rig.people.persons.list();
  if (one === undefined || other === undefined) throw new Error('two people were expected');
  await rig.people.persons.merge(one.id, other);
  const running = new Set<AccountName>([PHONE]);
  const fallback = createFallback({
    bus: rig.bus,
    persons: rig.people.persons,
    clock: rig.clock,
    log: silentLogger,
    accounts: () => [CHAT, PHONE],
    isRunning: (name) => running.has(name),
  });
  const pass = async (minutes: number) => {
    for (let each = 0; each < minutes; each += 1) {
      await rig.clock.advance(MINUTE);
      await fallback.check();
    }
  };
  return { rig, running, fallback, pass };
}

const answer = (id: string, chat = chatOn(CHAT, OWNER)): OutboundMessage => ({
  id: messageId(id),
  chat,
  markdown: `text of ${id}`,
});

describe('a door that is down', () => {
  it('hands a question over as a text, as it can be answered in its own chat only', async () => {
    const { rig, fallback, pass } = await twoChannels();
    await fallback.check();
    await rig.bus.send({ ...answer('q/0'), choices: [{ label: 'Allow once', token: 't' }] });
    await pass(12);
    const [moved] = await rig.claimed(PHONE);
    expect(moved?.message.choices).toBeUndefined();
    expect(moved?.message.markdown).toMatch(/text of q\/0\n\n.*`\/approvals`/);
  });

  it('hands what waits to another door of the person after ten minutes, in order and once', async () => {
    const { rig, running, fallback, pass } = await twoChannels();
    await fallback.check();
    await rig.bus.send(answer('a/0'));
    await rig.bus.send(answer('a/1'));
    await pass(10);
    expect(await rig.sentTo('900', 'phone')).toEqual([]);
    await pass(2);
    expect(await rig.sentTo('900', 'phone')).toEqual([
      'Could not reach you on chat:\n\ntext of a/0',
      'Could not reach you on chat:\n\ntext of a/1',
    ]);
    running.add(CHAT);
    await pass(20);
    expect(await rig.sentTo(OWNER)).toEqual([]);
    expect(await rig.sentTo('900', 'phone')).toHaveLength(2);
    expect((await rig.bus.trace(messageId('a/0')))?.steps.at(-1)?.what).toBe('moved');
  });

  it('keeps what it has for somebody with no other door that works', async () => {
    const { rig, running, pass } = await twoChannels();
    await rig.bus.send(answer('a/0'));
    await rig.bus.send(answer('b/0', chatOn(CHAT, 'stranger')));
    running.delete(PHONE);
    await pass(20);
    running.add(CHAT);
    await pass(1);
    expect(await rig.sentTo(OWNER)).toEqual(['text of a/0']);
    expect(await rig.sentTo('stranger')).toEqual(['text of b/0']);
    expect(await rig.sentTo('900', 'phone')).toEqual([]);
  });

  it('never moves what may have arrived', async () => {
    const { rig, pass } = await twoChannels();
    await rig.bus.send(answer('a/0'));
    await rig.bus.send(answer('c/0', chatOn(CHAT, 'else')));
    const [first] = await rig.claimed(CHAT);
    if (first === undefined) throw new Error('nothing was claimed');
    await rig.store.settle(first, {
      ...{ kind: 'retry', at: rig.clock.now(), reason: 'cut off' },
      ...{ inDoubt: true, wasRepeated: false },
    });
    await pass(20);
    expect(await rig.bus.divert(first.message.id, answer('a/0/moved'))).toBe('too late');
    expect(await rig.sentTo('900', 'phone')).toEqual([]);
  });

  it('never sends both when the door comes back at the same moment', async () => {
    const { rig } = await twoChannels();
    await rig.bus.send(answer('a/0'));
    const moved = answer('a/0/moved', chatOn(PHONE, '900'));
    const [claimed, diverted] = await Promise.all([
      rig.claimed(CHAT),
      rig.bus.divert(messageId('a/0'), moved),
    ]);
    expect(claimed.length === 1).toBe(diverted === 'too late');
    expect(await rig.sentTo('900', 'phone')).toHaveLength(diverted === 'diverted' ? 1 : 0);
  });
});

describe('a gateway that was down', () => {
  async function start(home: PeopleRig, told: string[]) {
    return createOutages({
      state: home.store.scope('outages'),
      clock: home.clock,
      accounts: () => [CHAT],
      isRunning: () => true,
      timeZone: () => 'UTC',
      tellOwner: (text) => void told.push(text),
    });
  }
  const sent = (home: PeopleRig, chat: string, minutesAgo: number): InboundMessage => ({
    id: messageId(`chat:${chat}:${minutesAgo}`),
    chat: chatOn(CHAT, chat),
    sender: person(chat),
    addressing: 'direct',
    text: 'x',
    sentAt: home.clock.now() - minutesAgo * MINUTE,
    receivedAt: home.clock.now(),
  });

  it('tells the owner once what came in meanwhile, also where it is killed before it has', async () => {
    const rig = await makePeopleRig();
    onTestFinished(() => rig[Symbol.asyncDispose]());
    const told: string[] = [];
    await (await start(rig, told)).check();
    await rig.clock.advance(60 * MINUTE);
    const after = await start(rig, told);
    for (const chat of ['1', '1', '2']) after.arrived(sent(rig, chat, 30));
    await after.check();
    expect(told).toEqual([]);
    const again = await start(rig, told);
    for (let minute = 0; minute < 5; minute += 1) {
      await rig.clock.advance(MINUTE);
      again.arrived(sent(rig, '3', 0));
      await again.check();
    }
    expect(told).toEqual([
      'I was offline since 12:00. Meanwhile: chat: 3 messages in 2 chats. Those of one chat are answered together.',
    ]);
  });

  it('says nothing of a short absence, or where nobody wrote', async () => {
    const rig = await makePeopleRig();
    onTestFinished(() => rig[Symbol.asyncDispose]());
    const told: string[] = [];
    await (await start(rig, told)).check();
    await rig.clock.advance(9 * MINUTE);
    const after = await start(rig, told);
    after.arrived(sent(rig, '1', 5));
    await after.check();
    await rig.clock.advance(60 * MINUTE);
    const later = await start(rig, told);
    await later.check();
    await rig.clock.advance(5 * MINUTE);
    await later.check();
    expect(told).toEqual([]);
  });
});
