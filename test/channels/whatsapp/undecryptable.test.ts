// Messages that could not be decrypted, as the vendor's library reports them: counted, waited for, and
// told to the owner when they did not come.

import { EventEmitter } from 'node:events';
import { proto, type WAMessage } from '@whiskeysockets/baileys';
import { describe, expect, it } from 'vitest';
import { createUndecryptable } from '../../../src/channels/whatsapp/undecryptable.ts';
import { createMemoryHost } from '../../support/memory-host.ts';
import { createMovableClock } from '../../support/movable-clock.ts';

const MINUTE_MS = 60_000;
const { CIPHERTEXT } = proto.WebMessageInfo.StubType;

function setUp() {
  const clock = createMovableClock();
  const host = createMemoryHost(clock);
  const ev = new EventEmitter();
  const start = () => {
    const undecryptable = createUndecryptable(host);
    const controller = new AbortController();
    const run = undecryptable.run(controller.signal);
    const attached = undecryptable.attach({ ev });
    const stop = async () => {
      attached[Symbol.dispose]();
      controller.abort();
      await run;
    };
    return { undecryptable, stop };
  };
  const report = (...messages: readonly WAMessage[]) =>
    ev.emit('messages.upsert', { messages, type: 'notify' });
  const logged = () => host.logged.filter(({ message }) => message.includes('decrypted'));
  return { clock, host, ev, start, report, logged };
}

function stub(id: string, options: { readonly user?: string; readonly name?: string } = {}) {
  const { user = '777', name } = options;
  const message: WAMessage = {
    key: { remoteJid: `${user}@lid`, id, fromMe: false },
    messageStubType: CIPHERTEXT,
    messageStubParameters: ['Bad MAC'],
  };
  return name === undefined ? message : { ...message, pushName: name };
}

describe('a message that could not be decrypted', () => {
  it('is told to the owner when it did not come after all', async () => {
    const { clock, host, start, report } = setUp();
    start();
    await clock.advance(0);
    const known = {
      ...stub('A', { name: 'Alice' }).key,
      remoteJidAlt: '4915112345@s.whatsapp.net',
    };
    report({ ...stub('A', { name: 'Alice' }), key: known });
    await clock.advance(4 * MINUTE_MS);
    expect(host.alerts).toEqual([]);
    await clock.advance(2 * MINUTE_MS);
    expect(host.alerts).toEqual([
      'could not read one message from Alice (+4915112345). I requested it again ' +
        'without success: ask the sender to send it again.',
    ]);
    await clock.advance(100 * MINUTE_MS);
    expect(host.alerts).toHaveLength(1);
  });

  it('is nobody’s concern when it came after a retry, or had come before', async () => {
    const { clock, host, start, report } = setUp();
    const { undecryptable } = start();
    await clock.advance(0);
    report(stub('LATER'));
    await clock.advance(2 * MINUTE_MS);
    undecryptable.arrived(['LATER', 'BEFORE']);
    report(stub('BEFORE'));
    await clock.advance(30 * MINUTE_MS);
    expect(host.alerts).toEqual([]);
  });

  it('is still waited for after a restart', async () => {
    const { clock, host, start, report } = setUp();
    const first = start();
    await clock.advance(0);
    report(stub('A'), stub('B'));
    await clock.advance(2 * MINUTE_MS);
    await first.stop();
    const second = start();
    await clock.advance(0);
    second.undecryptable.arrived(['B']);
    await clock.advance(4 * MINUTE_MS);
    expect(host.alerts).toEqual([
      expect.stringContaining('could not read one message from 777@lid'),
    ]);
  });

  it.each(['', '{', 'null', '{}', '[["777@lid"]]', '[["777@lid",{"waiting":{"A":"soon"}}]]'])(
    'is waited for anew where what was stored of others is `%s`',
    async (damaged) => {
      const { clock, host, start, report } = setUp();
      await host.state.set('undecryptable', damaged);
      start();
      await clock.advance(0);
      report(stub('B', { name: 'Bob' }));
      await clock.advance(6 * MINUTE_MS);
      expect(host.alerts).toEqual([
        expect.stringContaining('could not read one message from Bob (777@lid)'),
      ]);
    },
  );

  it('of a group, a status or our own phone is only counted', async () => {
    const { clock, host, start, report, logged } = setUp();
    start();
    await clock.advance(0);
    report(
      { ...stub('G'), key: { remoteJid: '1@g.us', participant: '777@lid', id: 'G' } },
      { ...stub('S'), key: { remoteJid: 'status@broadcast', participant: '777@lid', id: 'S' } },
      { ...stub('O'), key: { ...stub('O').key, fromMe: true } },
    );
    await clock.advance(10 * MINUTE_MS);
    expect(host.alerts).toEqual([]);
    expect(logged()).toHaveLength(1);
    expect(logged()[0]?.fields).toMatchObject({ messages: 3 });
  });

  it('may be one that can only be seen on the phone', async () => {
    const { clock, host, start, report } = setUp();
    start();
    await clock.advance(0);
    report({ key: { ...stub('V').key, isViewOnce: true } });
    await clock.advance(6 * MINUTE_MS);
    expect(host.alerts).toHaveLength(1);
  });

  it('is no reason to watch a connection that is over', async () => {
    const { clock, host, ev, start, report } = setUp();
    const { stop } = start();
    await clock.advance(0);
    await stop();
    expect(ev.listenerCount('messages.upsert')).toBe(0);
    report(stub('A'));
    await clock.advance(10 * MINUTE_MS);
    expect(host.logged).toEqual([]);
  });
});

describe('ten thousand of them', () => {
  it('from one person are one log line a minute and one notice an hour', async () => {
    const { clock, host, start, report, logged } = setUp();
    start();
    await clock.advance(0);
    for (let index = 0; index < 10_000; index += 1) report(stub(`M${index}`, { name: 'Mallory' }));
    await clock.advance(30 * MINUTE_MS);
    expect(logged()).toHaveLength(1);
    expect(logged()[0]?.fields).toEqual({ messages: 10_000, people: 1, most: '777@lid' });
    expect(host.alerts).toEqual([
      expect.stringContaining('could not read 10 or more messages from Mallory (777@lid)'),
    ]);
  });

  it('over a while are not told of more than once an hour each', async () => {
    const { clock, host, start, report } = setUp();
    start();
    await clock.advance(0);
    for (let minute = 0; minute < 180; minute += 10) {
      report(stub(`M${minute}`));
      await clock.advance(10 * MINUTE_MS);
    }
    expect(host.alerts.map((text) => /read (.*) from/.exec(text)?.[1])).toEqual([
      'one message',
      '6 messages',
      '6 messages',
    ]);
  });

  it('from as many people keep little, and tell the owner in one sentence', async () => {
    const { clock, host, start, report, logged } = setUp();
    start();
    await clock.advance(0);
    for (let index = 1; index <= 10_000; index += 1) {
      report(stub(`M${index}`, { user: `${100_000 + index}`, name: 'N'.repeat(5000) }));
    }
    await clock.advance(MINUTE_MS);
    const stored = (await host.state.get('undecryptable')) ?? '';
    expect(stored.length).toBeLessThan(50_000);
    await clock.advance(9 * MINUTE_MS);
    expect(logged()).toHaveLength(1);
    expect(host.alerts).toEqual([
      expect.stringContaining('could not read messages from 100 people'),
    ]);
    await clock.advance(120 * MINUTE_MS);
    expect((await host.state.get('undecryptable'))?.length).toBeLessThan(10);
  });
});
