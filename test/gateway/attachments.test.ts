import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AttachmentError, type Channel } from '../../src/channels/channel.ts';
import { InboundAttachments } from '../../src/kernel/intake/attachments.ts';
import { MediaError } from '../../src/kernel/media/media.ts';
import type { Attachment } from '../../src/kernel/message/attachment.ts';
import type { InboundMessage } from '../../src/kernel/message/message.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { message } from '../contract/bus-bench.ts';
import { createMemoryMedia } from '../support/memory-media.ts';
import { createMovableClock } from '../support/movable-clock.ts';

type Fetch = (ref: string, signal: AbortSignal) => AsyncIterable<Uint8Array>;

const LIMIT = 1000;
const never = new AbortController().signal;

async function* bytes(text: string) {
  yield Buffer.from(text);
}

async function* failing(error: Error): AsyncGenerator<Uint8Array> {
  yield Buffer.from('half');
  throw error;
}

const busy = () => new AttachmentError('test_busy', 'the platform is busy', { isFinal: false });
const gone = () =>
  new AttachmentError('test_gone', 'the platform has it no more', { isFinal: true });

function carrying(native: string, ...attachments: readonly Partial<Attachment>[]): InboundMessage {
  const given = attachments.length === 0 ? [{}] : attachments;
  const complete = given.map((attachment, index) => ({
    kind: 'document' as const,
    content: { kind: 'remote' as const, ref: `${native}.${index}` },
    ...attachment,
  }));
  return { ...message('a', native, ''), attachments: complete };
}

describe('what comes with messages', () => {
  const clock = createMovableClock();
  const media = createMemoryMedia(clock);
  let written = new Map<string, readonly Attachment[]>();
  let fetched: string[] = [];
  let fetch: Fetch = () => bytes('content');

  function open(hasPower = true) {
    const attachments = {
      maxUploadBytes: 1,
      fetch(ref: string, signal: AbortSignal) {
        fetched.push(ref);
        return fetch(ref, signal);
      },
    };
    return new InboundAttachments({
      media,
      clock,
      log: silentLogger,
      random: () => 1,
      listening: { listened: async (one) => one, told: async () => undefined },
      maxFileBytes: () => LIMIT,
      store: {
        async setAttachments(id, value) {
          written.set(id, value);
          return true;
        },
      },
      channel: () =>
        hasPower ? ({ attachments } as Pick<Channel, 'attachments'> as Channel) : undefined,
    });
  }

  async function readAll(came: InboundMessage, given = open()) {
    const [item] = await given.ready([{ message: came }], never);
    return item?.message.attachments ?? [];
  }

  const reasonOf = (attachment: Attachment | undefined) =>
    attachment?.content.kind === 'unread' ? attachment.content.reason : undefined;

  beforeEach(() => {
    written = new Map();
    fetched = [];
    fetch = () => bytes('content');
  });
  afterEach(() => expect(clock.pending).toBe(0));

  it('is stored, with the size and the type that it really has, and kept with the message', async () => {
    const came = carrying('1', { mimeType: 'image/png', sizeBytes: 3, name: 'a.png' });
    const [one] = await readAll(came);
    expect(one).toMatchObject({
      name: 'a.png',
      mimeType: 'text/plain',
      sizeBytes: 7,
      content: { kind: 'stored' },
    });
    expect(written.get(came.id)).toEqual([one]);
  });

  it('is fetched once, from the moment the message was accepted', async () => {
    await using given = open();
    const came = carrying('1');
    given.begin(came);
    await clock.advance(0);
    expect(fetched).toEqual(['1.0']);
    await readAll(came, given);
    await readAll(came, given);
    expect(fetched).toEqual(['1.0']);
  });

  it('waits for a storage that is away, and loses no file', async () => {
    let tries = 0;
    fetch = () =>
      ++tries < 30 ? failing(new MediaError('media_unavailable', 'away')) : bytes('at last');
    const reading = readAll(carrying('1', {}, {}, {}, {}, {}));
    for (let waited = 0; waited < 10; waited += 1) await clock.advance(5000);
    expect((await reading).map(({ content }) => content.kind)).toEqual(Array(5).fill('stored'));
  });

  it('costs a message without files nothing', async () => {
    const items = [{ message: message('a', '1') }];
    expect(await open().ready(items, never)).toBe(items);
  });

  it('is tried again where the platform was busy, and read then', async () => {
    let tries = 0;
    fetch = () => (++tries < 3 ? failing(busy()) : bytes('at last'));
    const reading = readAll(carrying('1'));
    await clock.advance(1000);
    await clock.advance(2000);
    expect((await reading)[0]?.content.kind).toBe('stored');
    expect(tries).toBe(3);
  });

  it.each([
    ['is gone', () => failing(gone()), 'the platform has it no more', 1],
    ['is empty', () => bytes(''), 'it is empty', 1],
    [
      'is larger than it said',
      () => bytes('x'.repeat(LIMIT + 1)),
      'it is larger than the limit of 1 kB',
      1,
    ],
    [
      'finds no room',
      () => failing(new MediaError('media_full', 'x')),
      'there is no storage space left',
      1,
    ],
    [
      'cannot be written',
      () => failing(new MediaError('media_failed', 'x')),
      'it could not be stored',
      1,
    ],
    ['stays busy', () => failing(busy()), 'the platform is busy', 3],
    ['fails in an unknown way', () => failing(new Error('secret')), 'it could not be fetched', 3],
  ])('says why it was not read when it %s', async (_case, given, reason, tries) => {
    fetch = given;
    const reading = readAll(carrying('1', {}, { kind: 'image' }));
    await clock.advance(10_000);
    expect((await reading).map(reasonOf)).toEqual([reason, reason]);
    expect(fetched).toHaveLength(2 * tries);
  });

  it('is not even asked for where it says itself that it is too large', async () => {
    const attachments = await readAll(carrying('1', { sizeBytes: 2000 }));
    expect(attachments.map(reasonOf)).toEqual(['its 2 kB are more than the limit of 1 kB']);
    expect(fetched).toEqual([]);
  });

  it('is unread where its door is gone', async () => {
    const reading = readAll(carrying('1'), open(false));
    await clock.advance(10_000);
    expect((await reading).map(reasonOf)).toEqual(['the channel cannot fetch it now']);
  });

  it('is given up after a minute, and the other files of the message are read', async () => {
    fetch = (ref) => (ref === '1.0' ? silent() : bytes('content'));
    const reading = readAll(carrying('1', {}, {}));
    await clock.advance(60_000);
    const attachments = await reading;
    expect(attachments.map(reasonOf)).toEqual(['it could not be fetched in time', undefined]);
  });

  it('is fetched four at a time', async () => {
    const open4: (() => void)[] = [];
    fetch = async function* () {
      await new Promise<void>((resolve) => open4.push(resolve));
      yield Buffer.from('x');
    };
    const reading = readAll(carrying('1', {}, {}, {}, {}, {}, {}));
    await clock.advance(0);
    expect(fetched).toHaveLength(4);
    for (const release of open4.splice(0)) release();
    await clock.advance(0);
    expect(fetched).toHaveLength(6);
    for (const release of open4.splice(0)) release();
    expect(await reading).toHaveLength(6);
  });

  it('stays unfetched when the gateway stops, so that the next one fetches it', async () => {
    fetch = silent;
    const first = open();
    const came = carrying('1');
    const reading = readAll(came, first);
    const failed = expect(reading).rejects.toThrow();
    await clock.advance(0);
    await first[Symbol.asyncDispose]();
    await failed;
    expect(written.size).toBe(0);
    fetch = () => bytes('content');
    expect((await readAll(came))[0]?.content.kind).toBe('stored');
  });
});

async function* silent(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('half');
  await new Promise(() => undefined);
}
