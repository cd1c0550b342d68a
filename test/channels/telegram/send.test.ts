import { describe, expect, test } from 'vitest';
import type { SendContext } from '../../../src/kernel/bus/bus.ts';
import { DeliveryError, NEVER } from '../../../src/kernel/message/errors.ts';
import type { NativeId } from '../../../src/kernel/message/ids.ts';
import { sending } from '../../contract/channel.ts';
import type { Fault } from '../../support/bot-api-faults.ts';
import { startFaultProxy } from '../../support/fault-proxy.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { ALICE, answer, chatOf, type Rig, seenBy, startRig } from './rig.ts';

async function open(options: Parameters<typeof startRig>[0] = {}): Promise<Rig> {
  const rig = await startRig(options);
  rig.api.chat(ALICE);
  return rig;
}

const failed = (rig: Rig, context: SendContext = sending(), markdown = 'an answer') =>
  rig.channel.send(answer(markdown), context).then(
    () => undefined,
    (error: unknown) => error,
  );

const refusal = (code: number, description: string, retry_after?: number): Fault => ({
  kind: 'error',
  code,
  description,
  ...(retry_after === undefined ? {} : { parameters: { retry_after } }),
});

describe('a send that may not begin yet', () => {
  const begun = (requestBegins: () => Promise<void>) => sending({ requestBegins });

  test('waits, and sends nothing where it must not begin', async () => {
    await using rig = await open();
    const { promise, resolve } = Promise.withResolvers<void>();
    const sent = rig.channel.send(
      answer('an answer'),
      begun(() => promise),
    );
    await rig.channel.send(answer('another'), sending());
    expect(seenBy(rig.api, ALICE)).toEqual(['another']);
    resolve();
    await sent;
    expect(seenBy(rig.api, ALICE)).toEqual(['another', 'an answer']);
    const unwanted = new DeliveryError('not wanted', { certainty: 'not_sent', remedy: NEVER });
    const error = await failed(
      rig,
      begun(() => Promise.reject(unwanted)),
    );
    expect(error).toBe(unwanted);
    expect(rig.api.calls).toHaveLength(2);
  });

  test('and is given up surely did not arrive', async () => {
    await using rig = await open();
    const giving = new AbortController();
    const { promise, resolve } = Promise.withResolvers<void>();
    const failing = failed(rig, sending({ signal: giving.signal, requestBegins: () => promise }));
    // Its own connection stands by then.
    await rig.channel.send(answer('another'), sending());
    giving.abort();
    expect(await failing).toMatchObject({ certainty: 'not_sent' });
    resolve();
    await rig.channel.send(answer('the next one'), sending());
    expect(seenBy(rig.api, ALICE)).toEqual(['another', 'the next one']);
  });
});

describe('a send that fails', () => {
  const table: readonly [string, Fault, object][] = [
    [
      '429',
      refusal(429, 'Too Many Requests', 17),
      { certainty: 'not_sent', remedy: { kind: 'after', delayMs: 17_000 } },
    ],
    [
      '403',
      refusal(403, 'Forbidden: bot was blocked by the user'),
      { certainty: 'not_sent', remedy: { kind: 'never' } },
    ],
    [
      'chat not found',
      refusal(400, 'Bad Request: chat not found'),
      { certainty: 'not_sent', remedy: { kind: 'never' } },
    ],
    ['401', refusal(401, 'Unauthorized'), { certainty: 'not_sent', remedy: { kind: 'backoff' } }],
    [
      '500',
      refusal(500, 'Internal Server Error'),
      { certainty: 'unknown', remedy: { kind: 'backoff' } },
    ],
    ['502 before', { kind: 'html', stage: 'before', status: 502 }, { certainty: 'unknown' }],
    ['502 after', { kind: 'html', stage: 'after', status: 502 }, { certainty: 'unknown' }],
    ['reset before', { kind: 'drop', stage: 'before' }, { certainty: 'unknown' }],
    ['reset after', { kind: 'drop', stage: 'after' }, { certainty: 'unknown' }],
    ['not JSON', { kind: 'not_json', stage: 'after' }, { certainty: 'unknown' }],
  ];
  test.each(table)(
    'by %s says whether it may have arrived and what to do',
    async (_, fault, expected) => {
      await using rig = await open();
      rig.api.fail({ method: 'sendMessage', fault });
      const error = await failed(rig);
      expect(error).toBeInstanceOf(DeliveryError);
      expect(error).toMatchObject(expected);
    },
  );

  test.each(['before', 'after'] as const)(
    'by silence %s acceptance is given up and unknown',
    async (stage) => {
      const clock = createMovableClock();
      await using rig = await open({ clock });
      rig.api.fail({ method: 'sendMessage', fault: { kind: 'hang', stage } });
      const failing = failed(rig);
      await rig.api.waitFor(() => rig.api.calls.length === 1);
      await clock.advance(30_000);
      expect(await failing).toMatchObject({ certainty: 'unknown', remedy: { kind: 'backoff' } });
    },
  );

  test('because nobody listens surely did not arrive', async () => {
    await using rig = await open();
    await using proxy = await startFaultProxy({ port: rig.api.port });
    await proxy.set({ kind: 'refuse' });
    rig.start({ apiRoot: `http://127.0.0.1:${proxy.port}` });
    const error = await failed(rig);
    expect(error).toMatchObject({ certainty: 'not_sent', remedy: { kind: 'backoff' } });
  });

  test('and may have arrived says so when it is sent again', async () => {
    await using rig = await open();
    rig.api.fail({ method: 'sendMessage', fault: { kind: 'drop', stage: 'after' } });
    expect(await failed(rig)).toMatchObject({ certainty: 'unknown' });
    await rig.channel.send(answer('an answer'), sending({ attempt: 2, repeatsUnknown: true }));
    expect(seenBy(rig.api, ALICE)).toEqual([
      'an answer',
      '(sent again: the first try was not confirmed)\n\nan answer',
    ]);
  });

  test('and fills a whole message is marked by a line of its own', async () => {
    await using rig = await open();
    const text = 'x'.repeat(4096);
    await rig.channel.send(answer(text), sending({ attempt: 2, repeatsUnknown: true }));
    expect(seenBy(rig.api, ALICE)).toEqual(['(sent again: the first try was not confirmed)', text]);
  });
});

describe('an answer in parts', () => {
  const paragraphs = Array.from({ length: 5 }, (_, n) =>
    `${n} ${'lorem ipsum '.repeat(300)}`.trim(),
  );
  const long = paragraphs.join('\n\n');

  test.each([0, 1, 2, 3, 4])(
    'that fails at part %i is completed without a copy or a gap',
    async (index) => {
      const clock = createMovableClock();
      await using rig = await open({ clock });
      rig.api.fail({
        method: 'sendMessage',
        skip: index,
        fault: refusal(429, 'Too Many Requests', 3),
      });
      const first = sending();
      const failing = failed(rig, first, long);
      const pump = setInterval(() => void clock.advance(1000), 2);
      expect(await failing).toMatchObject({ remedy: { kind: 'after', delayMs: 3000 } });
      expect(first.parts).toHaveLength(index);
      await rig.channel.send(answer(long), sending({ attempt: 2, sentParts: first.parts }));
      clearInterval(pump);
      expect(seenBy(rig.api, ALICE)).toEqual(paragraphs);
    },
  );

  test('begins in the draft and goes on below it', async () => {
    const clock = createMovableClock();
    await using rig = await open({ clock });
    const pump = setInterval(() => void clock.advance(1000), 2);
    const signal = AbortSignal.timeout(45_000);
    const draft = await place(rig, 'The draft', signal);
    const receipt = await rig.channel.send(answer(long), sending({ draft }));
    clearInterval(pump);
    expect(receipt.nativeIds[0]).toBe(draft);
    expect(seenBy(rig.api, ALICE)).toEqual(paragraphs);
  });
});

async function place(rig: Rig, markdown: string, signal: AbortSignal): Promise<NativeId> {
  const draft = await rig.channel.editing?.place(chatOf(ALICE), markdown, { signal });
  if (draft === undefined) throw new Error('the channel shows no drafts');
  return draft;
}

describe('markup', () => {
  test('that Telegram refuses is sent as plain text from the source', async () => {
    await using rig = await open();
    rig.api.fail({
      method: 'sendMessage',
      fault: refusal(400, "Bad Request: can't parse entities: Unsupported start tag"),
    });
    await rig.channel.send(answer('**bold** [x](https://a.b) <y>'), sending());
    expect(seenBy(rig.api, ALICE)).toEqual(['bold x (https://a.b) <y>']);
    expect(rig.api.calls.at(-1)?.payload).not.toHaveProperty('parse_mode');
  });

  test('arrives as entities and without previews', async () => {
    await using rig = await open();
    await rig.channel.send(answer('**b** `c`'), sending());
    const message = await rig.api.nextMessage(ALICE);
    expect(message.entities.map(({ type }) => type)).toEqual(['bold', 'code']);
    expect(rig.api.calls.at(-1)?.payload).toMatchObject({
      link_preview_options: { is_disabled: true },
    });
  });
});

describe('drafts', () => {
  const signal = () => AbortSignal.timeout(45_000);

  /** As live replies do it. */
  async function grow(rig: Rig, draft: NativeId, text: string): Promise<NativeId> {
    const { editing } = rig.channel;
    await editing?.edit(chatOf(ALICE), draft, text, signal());
    return (await editing?.editEnd?.(chatOf(ALICE), draft, text, signal())) ?? draft;
  }

  const numbers = Array.from({ length: 4000 }, (_, n) => `n${n}`).join(' ');

  test('show unfinished Markdown, and the end of what is too long in a second message', async () => {
    await using rig = await open();
    let draft = await place(rig, 'Look:\n\n```js\nlet a', signal());
    for (const length of [3000, 4500, 6000, 9000, 20_000]) {
      draft = await grow(rig, draft, numbers.slice(0, length));
    }
    const [first = '', second = '', ...more] = seenBy(rig.api, ALICE);
    expect(numbers.startsWith(first)).toBe(true);
    expect(second).toHaveLength(4096);
    expect(second.startsWith('…')).toBe(true);
    expect(numbers.slice(0, 20_000).endsWith(second.slice(1))).toBe(true);
    expect(more).toEqual([]);
    await rig.channel.editing?.remove(chatOf(ALICE), draft, signal());
    expect(seenBy(rig.api, ALICE)).toEqual([]);
    expect(rig.api.unmodified).toBe(0);
  });

  test('in two messages become the first two parts, and what shows them already is left alone', async () => {
    const clock = createMovableClock();
    await using rig = await open({ clock });
    const text = numbers.slice(0, 10_000);
    let draft = await place(rig, numbers.slice(0, 100), signal());
    draft = await grow(rig, draft, numbers.slice(0, 6000));
    draft = await grow(rig, draft, numbers.slice(0, 6000));
    const ids = rig.api.chat(ALICE).messages.map(({ id }) => String(id));
    const edits = rig.api.calls.length;
    const pump = setInterval(() => void clock.advance(1000), 2);
    const receipt = await rig.channel.send(answer(text), sending({ draft }));
    clearInterval(pump);
    expect(receipt.nativeIds.slice(0, 2)).toEqual(ids);
    expect(seenBy(rig.api, ALICE).join(' ')).toBe(text);
    // The first message stood as it was: one edit and one new message.
    expect(rig.api.calls.slice(edits).map(({ method }) => method)).toEqual([
      'editMessageText',
      'sendMessage',
    ]);
    expect(rig.api.unmodified).toBe(0);
  });

  test('in two messages leave nothing behind where the answer needs one', async () => {
    await using rig = await open();
    const draft = await grow(rig, await place(rig, 'It begins', signal()), numbers.slice(0, 6000));
    await rig.channel.send(answer('Short after all'), sending({ draft }));
    expect(seenBy(rig.api, ALICE)).toEqual(['Short after all']);
  });

  test('of which the person deleted the first message keep the parts in order', async () => {
    await using rig = await open();
    const text = numbers.slice(0, 6000).trim();
    const draft = await grow(rig, await place(rig, 'It begins', signal()), text);
    rig.api.erase(ALICE, rig.api.chat(ALICE).messages[0]?.id ?? 0);
    await rig.channel.send(answer(`At last: ${text}`), sending({ draft }));
    expect(seenBy(rig.api, ALICE).join(' ')).toBe(`At last: ${text}`);
  });

  test('never take the place of a caption', async () => {
    await using rig = await open();
    const draft = await place(rig, 'The answer so far', signal());
    const { id, sizeBytes } = await rig.host.media.put(Buffer.from('notes'), { maxBytes: 100 });
    const file = { kind: 'document', name: 'notes.txt', mimeType: 'text/plain' } as const;
    const caption = 'long '.repeat(300).trim();
    const attachments = [{ ...file, media: id, sizeBytes, caption }];
    rig.start();
    await rig.channel.send(answer('The answer', { attachments }), sending({ draft }));
    expect(seenBy(rig.api, ALICE)).toEqual(['The answer', '', caption]);
  });

  test('that already show the final text count as done', async () => {
    await using rig = await open();
    const draft = await place(rig, 'The same', signal());
    const calls = rig.api.calls.length;
    const receipt = await rig.channel.send(answer('The same'), sending({ draft }));
    expect(receipt.nativeIds).toEqual([draft]);
    expect(seenBy(rig.api, ALICE)).toEqual(['The same']);
    expect(rig.api.calls).toHaveLength(calls);
  });

  test('that the person deleted are replaced by a new message', async () => {
    await using rig = await open();
    const draft = await place(rig, 'Soon gone', signal());
    rig.api.erase(ALICE, Number(draft));
    await rig.channel.send(answer('Here I am'), sending({ draft }));
    expect(seenBy(rig.api, ALICE)).toEqual(['Here I am']);
  });

  test('whose final edit went unanswered are edited again without a mark', async () => {
    await using rig = await open();
    const draft = await place(rig, 'Growing', signal());
    rig.api.fail({ method: 'editMessageText', fault: { kind: 'drop', stage: 'after' } });
    expect(await failed(rig, sending({ draft }), 'Grown')).toMatchObject({ certainty: 'not_sent' });
    await rig.channel.send(answer('Grown'), sending({ draft, attempt: 2 }));
    expect(seenBy(rig.api, ALICE)).toEqual(['Grown']);
  });

  test('rest while Telegram wants it, and the final text waits no longer than told', async () => {
    const clock = createMovableClock();
    await using rig = await open({ clock });
    const draft = await place(rig, 'One', signal());
    rig.api.fail({ method: 'editMessageText', fault: refusal(429, 'Too Many Requests', 5) });
    const edit = (text: string) => rig.channel.editing?.edit(chatOf(ALICE), draft, text, signal());
    await expect(edit('One two')).rejects.toMatchObject({ remedy: { kind: 'after' } });
    const calls = rig.api.calls.length;
    await edit('One two three');
    expect(rig.api.calls).toHaveLength(calls);
    await clock.advance(2000);
    const error = await failed(rig, sending({ draft }), 'One two three four');
    expect(error).toMatchObject({ certainty: 'not_sent', remedy: { delayMs: 3000 } });
    await clock.advance(3000);
    await rig.channel.send(answer('One two three four'), sending({ draft, attempt: 2 }));
    expect(seenBy(rig.api, ALICE)).toEqual(['One two three four']);
  });

  test('without a final text are taken away', async () => {
    await using rig = await open();
    const draft = await place(rig, 'Thinking aloud', signal());
    await rig.channel.send(answer(' '), sending({ draft }));
    expect(seenBy(rig.api, ALICE)).toEqual([]);
  });
});

describe('quoting and typing', () => {
  test('an answer quotes its question where that is set, and only in its first part', async () => {
    await using rig = await startRig();
    rig.start({ quoteReplies: true });
    rig.api.say(ALICE, 'question');
    const { message } = await rig.host.until((host) => host.entries[0]);
    await rig.channel.send(answer('x '.repeat(3000), { replyTo: message.id }), sending());
    const replies = rig.api.chat(ALICE).messages.slice(1);
    expect(replies.map(({ replyTo }) => replyTo)).toEqual([
      rig.api.chat(ALICE).messages[0]?.id,
      undefined,
    ]);
  });

  test('typing is shown', async () => {
    await using rig = await open();
    await rig.channel.typing?.show(chatOf(ALICE), AbortSignal.timeout(45_000));
    expect(rig.api.chat(ALICE).actions).toHaveLength(1);
  });
});

describe('the token', () => {
  test('stands in no error, log, status or alert', async () => {
    const clock = createMovableClock();
    await using rig = await open({ clock });
    await using proxy = await startFaultProxy({ port: rig.api.port });
    const errors: unknown[] = [];
    for (const mode of ['refuse', 'reset', 'pass'] as const) {
      await proxy.set({ kind: mode });
      rig.start({ apiRoot: `http://127.0.0.1:${proxy.port}` });
      errors.push(await failed(rig));
      await rig.host.until(({ statuses }) => statuses.length > 0);
      await rig.stop();
    }
    rig.api.revoke();
    rig.start();
    errors.push(await rig.failure, await failed(rig));
    const { logged, statuses, alerts } = rig.host;
    const everything = [...errors.map(dump), JSON.stringify([logged.map(dump), statuses, alerts])];
    expect(everything.join('\n')).not.toContain(rig.api.token);
    expect(everything.join('\n')).not.toContain(rig.api.token.split(':')[1]);
  });
});

/** Everything an error or a log line holds, hidden properties and causes included. */
function dump(value: unknown, depth = 0): string {
  if (typeof value !== 'object' || value === null || depth > 6) return String(value);
  return Object.getOwnPropertyNames(value)
    .map((name) => `${name}=${dump(Reflect.get(value, name), depth + 1)}`)
    .join('\n');
}
