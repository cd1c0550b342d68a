import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deltaOf } from '../../src/http/replies.ts';
import type { LiveUpdate } from '../../src/kernel/message/message.ts';
import { answer, picture, runningTool, sendContext } from '../channels/local/local-rig.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { followEvents, type HttpRig, type ServerEvent, startHttp } from './http-rig.ts';

const EVENTS = '/api/web/chats/a/events';

async function say(rig: HttpRig, ...texts: readonly string[]) {
  for (const text of texts) {
    const { body } = await rig.post('/api/web/chats/a/messages', { clientId: text, text });
    expect(JSON.parse(body)).toEqual({ result: 'accepted' });
  }
}

const texts = (events: readonly ServerEvent[]) =>
  events.map(({ data }) => (data as { readonly text?: string }).text);

describe('following a chat', () => {
  it('begins behind what the reader has, named in the address or as the browser does', async () => {
    await using rig = await startHttp();
    await say(rig, 'one', 'two', 'three');
    const all = await followEvents(rig.address, EVENTS, (events) => events.length === 3);
    expect(all.map(({ id }) => id)).toEqual(['1', '2', '3']);
    const rest = await followEvents(
      rig.address,
      `${EVENTS}?after=2`,
      (events) => events.length === 1,
    );
    expect(texts(rest)).toEqual(['three']);
    const resumed = await followEvents(rig.address, EVENTS, (events) => events.length === 2, {
      'last-event-id': '1',
    });
    expect(texts(resumed)).toEqual(['two', 'three']);
  });

  it('shows a message as it was changed, and takes no change that says nothing', async () => {
    await using rig = await startHttp();
    await say(rig, 'one', 'two');
    const change = async (text: string, kind: string, id = 'web:default:a:one') => {
      const body = { clientId: `${kind}${text.length}`, text, amends: { id, kind } };
      return (await rig.post('/api/web/chats/a/messages', body)).status;
    };
    expect(await change('', 'edited')).toBe(400);
    expect(await change('still here', 'withdrawn')).toBe(400);
    expect(await change('new', 'replaced')).toBe(400);
    expect(await change('new', 'edited', 'web:default:a:none')).toBe(400);
    expect(await change('new', 'edited')).toBe(202);
    expect(await change('', 'withdrawn', 'web:default:a:two')).toBe(202);
    const all = await followEvents(rig.address, EVENTS, (events) => events.length === 3);
    expect(texts(all)).toEqual(['new', 'new', '']);
    expect(all.at(-1)?.data).toMatchObject({ amends: { kind: 'withdrawn' } });
  });

  it.each(['after=-1', 'after=x', 'after=1.5', 'after=1e99', 'live=other'])(
    'is refused with ?%s',
    async (query) => {
      await using rig = await startHttp();
      expect((await rig.ask(`${EVENTS}?${query}`)).status).toBe(400);
    },
  );

  it('resumes without loss or doubles when the connection is cut again and again', async () => {
    await using rig = await startHttp();
    await using proxy = await startFaultProxy({ port: rig.port });
    const address = `http://127.0.0.1:${proxy.port}`;
    const spoken = Array.from({ length: 30 }, (_, index) => `message-${index}`);
    const speaking = say(rig, ...spoken);
    const heard: ServerEvent[] = [];
    let cuts = 0;
    while (heard.length < spoken.length) {
      await proxy.set({ kind: 'cut', afterBytes: 1500 + cuts * 37 });
      const after = heard.at(-1)?.id ?? '0';
      try {
        await followEvents(address, `${EVENTS}?after=${after}`, (events) => {
          heard.push(...events.filter(({ id }) => Number(id) > heard.length));
          return heard.length === spoken.length;
        });
      } catch {
        cuts += 1;
      }
    }
    await speaking;
    expect(cuts).toBeGreaterThan(2);
    expect(texts(heard)).toEqual(spoken);
  });

  it('shows a sign of life every 15 seconds', async () => {
    await using rig = await startHttp();
    const following = followEvents(rig.address, EVENTS, (_events, heartbeats) => {
      // Each one, the greeting included, makes the next due.
      void rig.clock.advance(15_000);
      return heartbeats === 4;
    });
    expect(await following).toEqual([]);
  });

  it('ends with the server, and with its reader', async () => {
    const rig = await startHttp();
    const hangUp = new AbortController();
    const kept = await fetch(`${rig.address}${EVENTS}`, { headers: rig.credentials });
    const left = await fetch(`${rig.address}${EVENTS}`, {
      headers: rig.credentials,
      signal: hangUp.signal,
    });
    hangUp.abort();
    await expect(left.text()).rejects.toThrow();
    await rig.close();
    await kept.text().catch(() => 'cut off');
    expect(rig.clock.pending).toBe(0);
  });

  it('gives whole pictures, or on demand only what is new in them', async () => {
    await using rig = await startHttp();
    const show = (markdown: string) => rig.door.liveView?.show(picture('a', 'web:a#1', markdown));
    show('The answer');
    const whole = await followEvents(rig.address, EVENTS, (events) => events.length === 1);
    expect(whole[0]?.data).toMatchObject({ type: 'live', update: { markdown: 'The answer' } });
    const deltas = await followEvents(rig.address, `${EVENTS}?live=delta`, (events) => {
      if (events.length === 1) show('The answer is 42');
      return events.length === 2;
    });
    expect(deltas.map(({ data }) => data)).toMatchObject([
      { type: 'live', turnId: 'web:a#1', keep: 0, append: 'The answer', tools: [] },
      { type: 'live', turnId: 'web:a#1', keep: 10, append: ' is 42' },
    ]);
    expect(deltas[1]?.data).not.toHaveProperty('tools');
  });
});

describe('the difference between two pictures', () => {
  const text = fc.stringMatching(/^[ab😀🎉é\n]{0,12}$/u);

  it('folds back to the newer one, and never cuts a character in two', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 6 }), (all) => {
        let shown = '';
        let before: LiveUpdate | undefined;
        for (const markdown of all) {
          const now = picture('a', 't', markdown);
          const delta = deltaOf(before, now);
          expect(delta.append.isWellFormed()).toBe(true);
          shown = shown.slice(0, delta.keep) + delta.append;
          expect(shown).toBe(markdown);
          before = now;
        }
      }),
    );
  });

  it('costs a long answer its length, not its square', () => {
    let before: LiveUpdate | undefined;
    let sent = 0;
    let markdown = '';
    for (let word = 0; word < 5000; word += 1) {
      markdown += `word ${word} `;
      const now = picture('a', 't', markdown, { tools: before?.tools ?? [runningTool('time')] });
      sent += JSON.stringify(deltaOf(before, now)).length;
      before = now;
    }
    expect(sent).toBeLessThan(markdown.length * 10);
  });
});

describe('a message', () => {
  it('is refused with a time to try again while the bus is full', async () => {
    await using rig = await startHttp();
    rig.host.isFull = true;
    const full = await rig.post('/api/web/chats/a/messages', { clientId: 'c', text: 'x' });
    expect([full.status, full.headers['retry-after']]).toEqual([503, '5']);
    rig.host.isFull = false;
    const taken = await rig.post('/api/web/chats/a/messages', { clientId: 'c', text: 'x' });
    expect(taken.status).toBe(202);
  });

  it('sent twice is taken once, and the second time confirmed as well', async () => {
    await using rig = await startHttp();
    const send = () => rig.post('/api/web/chats/a/messages', { clientId: 'c', text: 'x' });
    expect((await send()).body).toBe('{"result":"accepted"}');
    expect((await send()).body).toBe('{"result":"duplicate"}');
    expect(rig.host.texts()).toEqual(['x']);
  });

  it('stands in the list of chats with what was answered', async () => {
    await using rig = await startHttp();
    await say(rig, 'hello');
    await rig.door.send(answer('a', 'web:a#1/0', 'hi'), sendContext());
    const { chats } = JSON.parse((await rig.ask('/api/web/chats')).body);
    expect(chats).toMatchObject([{ chat: 'a', title: 'hello', lastSeq: 2 }]);
  });

  it('can be stopped, by name of its door and chat', async () => {
    await using rig = await startHttp();
    expect((await rig.post('/api/web/chats/a/stop', {})).status).toBe(202);
    expect(rig.stops).toEqual(['web/a']);
  });
});
