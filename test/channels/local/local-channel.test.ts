import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChannelClosedError, LocalNameError } from '../../../src/channels/local-channel.ts';
import { titleOf } from '../../../src/channels/web/chat-log.ts';
import { BusFullError } from '../../../src/kernel/message/errors.ts';
import { messageId } from '../../../src/kernel/message/ids.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import {
  answer,
  iterate,
  makeLocalChannel,
  openLocalChannel,
  picture,
  readEvents,
  runningTool,
  sendContext,
  textOf,
} from './local-rig.ts';

const never = new AbortController().signal;

describe('what a person says at a door', () => {
  it('reaches the bus under an id that the page chose, from the owner', async () => {
    await using rig = await openLocalChannel();
    expect(await rig.door.submit({ chat: 'a', clientId: 'c1', text: 'hello' })).toBe('accepted');
    expect(rig.host.entries).toMatchObject([
      {
        kind: 'queue',
        message: {
          id: 'web:default:a:c1',
          text: 'hello',
          addressing: 'direct',
          sender: { kind: 'person', id: 'owner', verified: 'verified' },
        },
      },
    ]);
  });

  it('is taken once however often the page sends it, also at the same moment', async () => {
    await using rig = await openLocalChannel();
    const message = { chat: 'a', clientId: 'c1', text: 'hello' };
    const results = await Promise.all([1, 2, 3].map(() => rig.door.submit(message)));
    expect(results.toSorted()).toEqual(['accepted', 'duplicate', 'duplicate']);
    expect(rig.host.texts()).toEqual(['hello']);
    expect(await rig.door.chats(9)).toMatchObject([{ chat: 'a', lastSeq: 1 }]);
  });

  it('is known as a repeat after a restart', async () => {
    const first = await openLocalChannel();
    await first.door.submit({ chat: 'a', clientId: 'c1', text: 'hello' });
    await first.stopIntake();
    await using second = await openLocalChannel(first.host);
    expect(await second.door.submit({ chat: 'a', clientId: 'c1', text: 'hello' })).toBe(
      'duplicate',
    );
  });

  it('does not come back after a restart when it was refused because the bus was full', async () => {
    const first = await openLocalChannel();
    first.host.isFull = true;
    const message = { chat: 'a', clientId: 'c1', text: 'too much' };
    await expect(first.door.submit(message)).rejects.toThrow(BusFullError);
    await first.stopIntake();
    first.host.isFull = false;
    await using second = await openLocalChannel(first.host);
    expect(second.host.entries).toEqual([]);
    expect(await second.door.chats(9)).toEqual([]);
    expect(await second.door.submit(message)).toBe('accepted');
  });

  it.each(['', 'a/b', '..', '.', 'ü', 'a b', 'x'.repeat(65), '%2e'])(
    'is refused in a chat called "%s"',
    async (chat) => {
      await using rig = await openLocalChannel();
      const submitted = rig.door.submit({ chat, clientId: 'c1', text: 'x' });
      await expect(submitted).rejects.toThrow(LocalNameError);
      const read = readEvents(rig.door.events(chat, 0, never), () => true);
      await expect(read).rejects.toThrow(LocalNameError);
    },
  );

  it('waits for a gateway that starts, but not for ever', async () => {
    const clock = createMovableClock();
    const submitted = makeLocalChannel(clock).submit({ chat: 'a', clientId: 'c', text: 'x' });
    const outcome = expect(submitted).rejects.toThrow(ChannelClosedError);
    await clock.advance(10_000);
    await outcome;
  });

  it('is refused while the gateway stops, when answers still come and are read', async () => {
    await using rig = await openLocalChannel();
    await rig.door.submit({ chat: 'a', clientId: 'c1', text: 'question' });
    await rig.stopIntake();
    await expect(rig.door.submit({ chat: 'a', clientId: 'c2', text: 'late' })).rejects.toThrow(
      ChannelClosedError,
    );
    const reading = readEvents(rig.door.events('a', 0, never), (_event, all) => all.length === 2);
    await rig.door.send(answer('a', 'web:a#1/0', 'answer'), sendContext());
    expect((await reading).map(textOf)).toEqual(['question', 'answer']);
  });
});

describe('a crash while a message is taken in', () => {
  /** Kills the process, so to speak, at the n-th write or at the hand-over to the bus. */
  async function crashAt(step: number): Promise<'crashed' | 'survived'> {
    const first = await openLocalChannel();
    const { host } = first;
    let steps = 0;
    const killed = new Error('killed');
    const stepOn = () => {
      steps += 1;
      if (steps === step) throw killed;
    };
    const dying = <A extends unknown[], R>(work: (...args: A) => Promise<R>) => {
      return async (...args: A): Promise<R> => {
        stepOn();
        const result = await work(...args);
        stepOn();
        return result;
      };
    };
    host.state.set = dying(host.state.set);
    host.state.update = dying(host.state.update) as typeof host.state.update;
    host.receive = dying(host.receive.bind(host));
    const message = { chat: 'a', clientId: 'c1', text: 'hello' };
    const outcome = await first.door.submit(message).then(
      () => 'survived' as const,
      (error) => {
        expect(error).toBe(killed);
        return 'crashed' as const;
      },
    );
    await first.stopIntake();
    await using second = await openLocalChannel(host);
    // The page got no answer, so it sends again; or it was closed and does not.
    if (step % 2 === 0) await second.door.submit(message);
    const hasIntent = step > 1;
    expect(second.host.texts()).toEqual(step % 2 === 0 || hasIntent ? ['hello'] : []);
    const [chat] = await second.door.chats(1);
    expect(chat?.lastSeq ?? 0).toBe(second.host.texts().length);
    return outcome;
  }

  it('loses and doubles nothing, whichever step it cuts off', async () => {
    const outcomes: string[] = [];
    for (let step = 1; step <= 7; step += 1) outcomes.push(await crashAt(step));
    expect(outcomes).toEqual([...Array.from({ length: 6 }, () => 'crashed'), 'survived']);
  });
});

describe('what the agent says at a door', () => {
  it('stands in the log once, however often and concurrently it is delivered', async () => {
    await using rig = await openLocalChannel();
    const message = answer('a', 'web:a#1/0', 'answer');
    const receipts = await Promise.all([1, 2, 3].map(() => rig.door.send(message, sendContext())));
    expect(new Set(receipts.flatMap(({ nativeIds }) => nativeIds))).toEqual(new Set(['1']));
    expect(await rig.door.chats(9)).toMatchObject([{ lastSeq: 1 }]);
  });

  it('is not lost where another process writes to the chat at the same moment', async () => {
    await using rig = await openLocalChannel();
    await using elsewhere = await openLocalChannel(rig.host);
    const numbers = [0, 1, 2, 3];
    await Promise.all(
      numbers.flatMap((n) => [
        rig.door.send(answer('a', `web:a#${n}/0`, `here ${n}`), sendContext()),
        elsewhere.door.send(answer('a', `web:b#${n}/0`, `there ${n}`), sendContext()),
      ]),
    );
    expect(await rig.door.chats(1)).toMatchObject([{ lastSeq: 8 }]);
    const events = await readEvents(
      rig.door.events('a', 0, never),
      (_event, all) => all.length === 8,
    );
    expect(events.map(textOf).toSorted()).toEqual(
      [...numbers.map((n) => `here ${n}`), ...numbers.map((n) => `there ${n}`)].toSorted(),
    );
  });

  it('opens a chat of its own when it comes first', async () => {
    await using rig = await openLocalChannel();
    await rig.door.send(answer('notices', 'alert/1', '**email:** is down'), sendContext());
    expect(await rig.door.chats(9)).toMatchObject([{ chat: 'notices', title: 'email: is down' }]);
  });
});

describe('reading a door', () => {
  it('gives each message once and in order, wherever the connection was cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('person', 'agent'), { minLength: 1, maxLength: 12 }),
        fc.array(fc.nat(5), { maxLength: 6 }),
        async (speakers, cuts) => {
          await using rig = await openLocalChannel();
          const speak = async () => {
            for (const [index, speaker] of speakers.entries()) {
              const text = `${speaker} ${index}`;
              if (speaker === 'agent') {
                await rig.door.send(answer('a', `web:a#${index}/0`, text), sendContext());
              } else await rig.door.submit({ chat: 'a', clientId: `c${index}`, text });
            }
          };
          const speaking = speak();
          const heard: string[] = [];
          let seen = 0;
          for (const cut of [...cuts, 99]) {
            const count = Math.min(cut, speakers.length - heard.length);
            if (count === 0) continue;
            const events = rig.door.events('a', seen, never);
            for (const event of await readEvents(events, (_event, all) => all.length === count)) {
              heard.push(textOf(event));
              if (event.type === 'said') seen = event.seq;
            }
          }
          await speaking;
          expect(heard).toEqual(speakers.map((speaker, index) => `${speaker} ${index}`));
        },
      ),
      { numRuns: 40 },
    );
  });

  it('gives a slow reader every message but only the newest picture of each turn', async () => {
    await using rig = await openLocalChannel();
    const events = iterate(rig.door.events('a', 0, never));
    await rig.door.submit({ chat: 'a', clientId: 'c', text: 'question' });
    const first = await events.next();
    for (let words = 0; words < 5000; words += 1) {
      rig.door.liveView?.show(picture('a', 'web:a#1', `word ${words}`));
    }
    for (let index = 0; index < 250; index += 1) {
      await rig.door.send(answer('a', `web:a#0/${index}`, `text ${index}`), sendContext());
    }
    const rest = await readEvents(events, (event) => event.type === 'live');
    expect(first.value).toMatchObject({ type: 'said', text: 'question' });
    expect(rest.map(textOf)).toEqual([
      ...Array.from({ length: 250 }, (_, index) => `text ${index}`),
      'writing:word 4999',
    ]);
  });

  it('shows a newcomer the turns that run, and none that ended', async () => {
    await using rig = await openLocalChannel();
    const show = (...args: Parameters<typeof picture>) => rig.door.liveView?.show(picture(...args));
    show('a', 'web:a#1', 'over', { phase: 'ended', result: { kind: 'answered', answers: 1 } });
    show('a', 'web:a#2', 'half an answ', { tools: [runningTool('time')] });
    show('b', 'web:b#1', 'another chat');
    const [event] = await readEvents(rig.door.events('a', 0, never), () => true);
    expect(event).toMatchObject({
      type: 'live',
      update: { turnId: 'web:a#2', markdown: 'half an answ', tools: [{ name: 'time' }] },
    });
  });

  it('tells how a turn ended before the answer it announces', async () => {
    await using rig = await openLocalChannel();
    const events = iterate(rig.door.events('a', 0, never));
    await rig.door.submit({ chat: 'a', clientId: 'c', text: 'question' });
    await events.next();
    await rig.door.send(answer('a', 'web:a#1/0', 'answer'), sendContext());
    rig.door.liveView?.show(picture('a', 'web:a#1', 'answer', { phase: 'ended' }));
    rig.door.liveView?.show(picture('a', 'web:a#2', 'next'));
    const rest = await readEvents(events, (_event, all) => all.length === 3);
    expect(rest.map(textOf)).toEqual(['ended:answer', 'answer', 'writing:next']);
  });

  it('tells a newcomer that a turn failed, before the answer that says why', async () => {
    await using rig = await openLocalChannel();
    await rig.door.submit({ chat: 'a', clientId: 'c', text: 'question' });
    const result = { kind: 'failed', answers: 1 } as const;
    rig.door.liveView?.show(picture('a', 'web:a#1', '', { phase: 'ended', result }));
    await rig.door.send(answer('a', 'web:a#1/0', 'why'), sendContext());
    const events = await readEvents(
      rig.door.events('a', 0, never),
      (event) => textOf(event) === 'why',
    );
    expect(events).toMatchObject([
      { text: 'question' },
      { ended: { turn: 'web:a#1', ...result } },
      { text: 'why' },
    ]);
  });

  it('goes on for a reader who is ahead of a log that was restored', async () => {
    await using rig = await openLocalChannel();
    await rig.door.submit({ chat: 'a', clientId: 'c1', text: 'old' });
    const events = rig.door.events('a', 80, never);
    const reading = readEvents(events, () => true);
    await rig.clock.advance(0);
    await rig.door.submit({ chat: 'a', clientId: 'c2', text: 'new' });
    expect((await reading).map(textOf)).toEqual(['new']);
  });

  it('ends when its reader goes', async () => {
    await using rig = await openLocalChannel();
    const gone = new AbortController();
    const reading = readEvents(rig.door.events('a', 0, gone.signal), () => false);
    await rig.clock.advance(0);
    gone.abort();
    expect(await reading).toEqual([]);
  });

  it('passes over a damaged row instead of blocking the chat', async () => {
    await using rig = await openLocalChannel();
    for (const text of ['one', 'two', 'three']) {
      await rig.door.submit({ chat: 'a', clientId: text, text });
    }
    const rows = await rig.host.state.list('said/a/');
    await rig.host.state.set(rows[1]?.key ?? '', '{"torn":');
    const read = await readEvents(
      rig.door.events('a', 0, never),
      (_event, all) => all.length === 2,
    );
    expect(read.map(textOf)).toEqual(['one', 'three']);
  });
});

describe('the list of chats', () => {
  it('has the newest first, titled by their first words, no more than asked for', async () => {
    await using rig = await openLocalChannel();
    for (const chat of ['a', 'b', 'c', 'a']) {
      await rig.clock.advance(1000);
      const clientId = String(rig.clock.now());
      await rig.door.submit({ chat, clientId, text: `words in ${chat} at ${clientId}` });
    }
    const chats = await rig.door.chats(2);
    expect(chats.map(({ chat, lastSeq }) => [chat, lastSeq])).toEqual([
      ['a', 2],
      ['c', 1],
    ]);
    expect(chats[0]?.title).toMatch(/^words in a at/);
  });

  it.each([
    ['hello', 'hello'],
    ['  several\n\n  lines\tof text ', 'several lines of text'],
    ['x'.repeat(80), `${'x'.repeat(59)}…`],
    [`${'word '.repeat(20)}`, `${'word '.repeat(11).trim()}…`],
    ['👩‍👩‍👧'.repeat(9), `${'👩‍👩‍👧'.repeat(7)}…`],
    ['**email:** run `nanobot doctor`, 2 ** 3', 'email: run nanobot doctor, 2 ** 3'],
    ['', ''],
  ])('titles %j as %j', (text, title) => {
    expect(titleOf(text)).toBe(title);
  });
});

describe('what a person changes at a door', () => {
  const id = messageId('web:default:a:c1');
  const edit = (clientId: string, text: string) =>
    ({ chat: 'a', clientId, text, amends: { id, kind: 'edited' } }) as const;

  it('is told to the bus once, and every reader from then on has only the words of now', async () => {
    await using rig = await openLocalChannel();
    await rig.door.submit({ chat: 'a', clientId: 'c1', text: 'first words' });
    await rig.door.submit({ chat: 'a', clientId: 'c2', text: 'another' });
    expect(await rig.door.submit(edit('e1', 'second words'))).toBe('accepted');
    expect(await rig.door.submit(edit('e1', 'second words'))).toBe('duplicate');
    await rig.door.submit(edit('e2', 'third words'));
    expect(rig.host.entries.map(({ message }) => message.amends)).toEqual([
      ...[undefined, undefined],
      ...[
        { id, kind: 'edited' },
        { id, kind: 'edited' },
      ],
    ]);
    const read = () =>
      readEvents(rig.door.events('a', 0, never), (_event, all) => all.length === 3);
    expect((await read()).map(textOf)).toEqual(['third words', 'another', 'third words']);
    expect(await rig.door.chats(9)).toMatchObject([{ title: 'third words', lastSeq: 4 }]);
    const gone = {
      chat: 'a',
      clientId: 'e3',
      text: '',
      amends: { id, kind: 'withdrawn' },
    } as const;
    await rig.door.submit(gone);
    const left = await readEvents(
      rig.door.events('a', 0, never),
      (_event, all) => all.length === 2,
    );
    expect(left.map(textOf)).toEqual(['another', '']);
    expect(JSON.stringify(await rig.host.state.list(''))).not.toContain('words');
    expect(await rig.door.chats(9)).toMatchObject([{ title: 'another' }]);
    await expect(rig.door.submit(edit('e4', 'too late'))).rejects.toThrow(LocalNameError);
  });

  it('comes to the bus and into the log although the process died in between', async () => {
    const first = await openLocalChannel();
    await first.door.submit({ chat: 'a', clientId: 'c1', text: 'first words' });
    const { update } = first.host.state;
    first.host.state.update = async () => {
      throw new Error('killed');
    };
    await expect(first.door.submit(edit('e1', 'second words'))).rejects.toThrow('killed');
    first.host.state.update = update;
    await first.stopIntake();
    await using second = await openLocalChannel(first.host);
    const read = await readEvents(
      second.door.events('a', 0, never),
      (_event, all) => all.length === 2,
    );
    expect(read.map(textOf)).toEqual(['second words', 'second words']);
    expect(await second.door.submit(edit('e1', 'second words'))).toBe('duplicate');
  });

  it('can be nothing that was pressed, that the agent said or that is not there', async () => {
    await using rig = await openLocalChannel();
    await rig.door.submit({ chat: 'a', clientId: 'c1', text: 'Yes', press: 'tok' });
    await rig.door.send(answer('a', 'turn/0', 'my answer'), sendContext());
    for (const other of [id, messageId('turn/0'), messageId('web:default:a:c9')]) {
      const change = { ...edit('e1', 'mine now'), amends: { id: other, kind: 'edited' } } as const;
      await expect(rig.door.submit(change)).rejects.toThrow(LocalNameError);
    }
    expect(rig.host.entries).toHaveLength(1);
  });
});
