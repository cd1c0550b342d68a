// The server against an unmodified Baileys: linking, logins, endings and faults. What people write
// is tried in people.test.ts.

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type BinaryNode, Curve, getBinaryNodeChild } from '@whiskeysockets/baileys';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { BaileysClient, linkedAuth, memoryAuth } from './baileys-client.ts';
import type { Ending, WhatsAppServer } from './contract.ts';
import { startWhatsAppServer } from './server.ts';
import { trustVariables } from './trust.ts';
import { trustedWhatsAppServer } from './trusted.ts';

const shared = await trustedWhatsAppServer();

describe('linking', () => {
  test('a scanned QR links the device, which then logs in', async () => {
    const phone = await shared.phone({ name: 'Ada' });
    const auth = memoryAuth();
    await using first = new BaileysClient(shared, auth);
    await phone.scan(await first.qr());
    expect((await first.closed()).code).toBe(515);
    expect(phone.linked).toBe(true);

    await using client = new BaileysClient(shared, auth);
    await client.open();
    await phone.online();
    expect(auth.creds.me).toMatchObject({
      id: `${phone.number}:1@s.whatsapp.net`,
      lid: `${phone.lid}:1@lid`,
    });
    expect(phone.counts).toEqual({ logins: 1, registrations: 1, atOnce: 1 });
  });

  test('a typed code links the device as well', async () => {
    const phone = await shared.phone();
    const auth = memoryAuth();
    await using first = new BaileysClient(shared, auth);
    await first.qr();
    const code = await first.socket.requestPairingCode(phone.number);
    await phone.typesCode(`${code.slice(0, 4)}-${code.slice(4).toLowerCase()}`);
    expect((await first.closed()).code).toBe(515);

    await using client = new BaileysClient(shared, auth);
    await client.open();
    expect(phone.linked).toBe(true);
  });

  test('a wrong code is refused by the phone, and the right one works after it', async () => {
    const phone = await shared.phone();
    await using client = new BaileysClient(shared, memoryAuth());
    await client.qr();
    const code = await client.socket.requestPairingCode(phone.number);
    await expect(phone.typesCode('WRNGCODE')).rejects.toThrow('the code is wrong');
    expect(phone.linked).toBe(false);
    await phone.typesCode(code);
    expect(phone.linked).toBe(true);
  });

  test('a QR of a client that left cannot be scanned', async () => {
    const phone = await shared.phone();
    const client = new BaileysClient(shared, memoryAuth());
    const qr = await client.qr();
    await client[Symbol.asyncDispose]();
    await expect(phone.scan(qr)).rejects.toThrow('no longer valid');
    expect(phone.linked).toBe(false);
  });

  test('a connection that drops after a code was asked for leaves credentials that are refused', async () => {
    const phone = await shared.phone();
    const auth = memoryAuth();
    await using first = new BaileysClient(shared, auth);
    await first.qr();
    await first.socket.requestPairingCode(phone.number);
    const typed = phone.typesCode('WRNGCODE');
    await expect(typed).rejects.toThrow();
    await phone.end({ kind: 'drop' });
    expect((await first.closed()).code).toBe(428);

    await using second = new BaileysClient(shared, auth);
    expect((await second.closed()).code).toBe(401);
  });

  test('unlinking ends the connection with 401 and refuses the next login', async () => {
    const phone = await shared.phone();
    const auth = await linkedAuth(shared, phone);
    await using client = await new BaileysClient(shared, auth).open();
    await phone.unlink();
    expect((await client.closed()).code).toBe(401);
    await using again = new BaileysClient(shared, auth);
    expect((await again.closed()).code).toBe(401);
    expect(phone.linked).toBe(false);

    await using anew = await new BaileysClient(shared, await linkedAuth(shared, phone)).open();
    expect(anew.socket.user?.id).toBe(`${phone.number}:2@s.whatsapp.net`);
  });

  test('a client that logs out is linked no more', async () => {
    const phone = await shared.phone();
    await using client = await new BaileysClient(shared, await linkedAuth(shared, phone)).open();
    await phone.online();
    await client.socket.logout();
    await phone.offline();
    expect(phone.linked).toBe(false);
  });
});

describe('logging in', () => {
  test('another noise key than the one registered is refused', async () => {
    const phone = await shared.phone();
    const auth = await linkedAuth(shared, phone);
    const creds = { ...auth.creds, noiseKey: Curve.generateKeyPair() };
    await using client = new BaileysClient(shared, { ...auth, creds });
    expect((await client.closed()).code).toBe(401);
    expect(phone.counts.logins).toBe(0);
  });

  test('refused logins are let in again when the refusal is lifted', async () => {
    const phone = await shared.phone();
    const auth = await linkedAuth(shared, phone);
    phone.refuseLogins({ kind: 'failure', reason: 503 });
    for (const _ of [1, 2]) {
      await using refused = new BaileysClient(shared, auth);
      expect((await refused.closed()).code).toBe(503);
    }
    phone.refuseLogins(undefined);
    await using client = await new BaileysClient(shared, auth).open();
    expect(client.socket.user?.id).toContain(phone.number);
  });

  test('a second login with the same credentials replaces the first', async () => {
    const phone = await shared.phone();
    const auth = await linkedAuth(shared, phone);
    await using first = await new BaileysClient(shared, auth).open();
    await using second = await new BaileysClient(shared, auth).open();
    expect((await first.closed()).code).toBe(440);
    expect(second.updates.some(({ connection }) => connection === 'close')).toBe(false);
    await phone.online();
    expect(phone.counts.atOnce).toBe(2);
  });

  test('the routing info it was given comes back with the next login', async () => {
    const phone = await shared.phone();
    const auth = await linkedAuth(shared, phone);
    await using first = await new BaileysClient(shared, auth).open();
    await first.sees(
      ({ receivedPendingNotifications }) => receivedPendingNotifications || undefined,
    );
    expect(auth.creds.routingInfo).toBeDefined();
    await first[Symbol.asyncDispose]();
    await using second = await new BaileysClient(shared, auth).open();
    expect(second.socket.user?.id).toContain(phone.number);
  });

  test('the pre-keys a client uploads are counted', async () => {
    const phone = await shared.phone();
    const auth = await linkedAuth(shared, phone);
    await using first = await new BaileysClient(shared, auth).open();
    await first.history();
    await first[Symbol.asyncDispose]();

    await using second = await new BaileysClient(shared, auth).open();
    const before = await preKeysOnServer(second);
    await second.socket.uploadPreKeys(5);
    expect(await preKeysOnServer(second)).toBe(before + 5);
    await second.socket.rotateSignedPreKey();
    await second.socket.digestKeyBundle();
  });
});

async function preKeysOnServer({ socket }: BaileysClient): Promise<number> {
  const to = '@s.whatsapp.net';
  const answer: BinaryNode = await socket.query({
    tag: 'iq',
    attrs: { to, type: 'get', xmlns: 'encrypt' },
    content: [{ tag: 'count', attrs: {} }],
  });
  return Number(getBinaryNodeChild(answer, 'count')?.attrs['value']);
}

describe('what comes while the device is offline', () => {
  test('waits, and is delivered in order and marked before anything live', async () => {
    const phone = await shared.phone();
    const contact = await shared.contact(phone);
    const auth = await linkedAuth(shared, phone);
    await using first = await new BaileysClient(shared, auth).open();
    await first.history();
    await first[Symbol.asyncDispose]();
    await phone.offline();
    const before = phone.queued;
    const waiting = [];
    for (const text of ['one', 'two', 'three']) waiting.push(await contact.writes(text));
    expect(phone.queued).toBe(before + 3);

    await using second = new BaileysClient(shared, auth);
    const came: string[] = [];
    second.socket.ws.on('CB:message', ({ attrs }: BinaryNode) => {
      came.push(`${attrs['id']} offline=${attrs['offline']}`);
    });
    second.socket.ws.on('CB:ib,,offline', () => came.push('marker'));
    await second.open();
    await phone.online();
    const live = await contact.writes('four');
    await second.readsText('four');
    expect(came.slice(-5)).toEqual([
      ...waiting.map((id) => `${id} offline=1`),
      'marker',
      `${live} offline=undefined`,
    ]);
    expect(contact.deliveredIds).toEqual([...waiting, live]);
    expect(phone.queued).toBe(0);
  });

  test('is delivered again until it was received', async () => {
    const phone = await shared.phone();
    const contact = await shared.contact(phone);
    const auth = await linkedAuth(shared, phone);
    await using first = await new BaileysClient(shared, auth).open();
    await first.history();
    shared.fault({ direction: 'down', stanza: 'message', effect: { kind: 'drop' } });
    const lost = await contact.writes('into the void');
    await first[Symbol.asyncDispose]();
    await phone.offline();

    await using second = await new BaileysClient(shared, auth).open();
    await second.readsText('into the void');
    expect(contact.deliveredIds).toEqual([lost]);
  });
});

const ENDINGS: readonly (readonly [Ending, number])[] = [
  [{ kind: 'stream_error', code: 515 }, 515],
  [{ kind: 'stream_error', code: 503 }, 503],
  [{ kind: 'stream_error', code: 401 }, 401],
  [{ kind: 'stream_error', code: 500 }, 500],
  [{ kind: 'conflict' }, 440],
  [{ kind: 'failure', reason: 401 }, 401],
  [{ kind: 'failure', reason: 403 }, 403],
  [{ kind: 'failure', reason: 405 }, 405],
  [{ kind: 'failure', reason: 503 }, 503],
  [{ kind: 'close' }, 428],
  [{ kind: 'drop' }, 428],
  [{ kind: 'stream_end' }, 428],
];

describe.each(ENDINGS)('the ending %o', (ending, code) => {
  test(`closes an open connection with ${code}`, async () => {
    const phone = await shared.phone();
    const auth = await linkedAuth(shared, phone);
    await using client = await new BaileysClient(shared, auth).open();
    await phone.online();
    await phone.end(ending);
    expect((await client.closed()).code).toBe(code);
    await phone.offline();
  });

  test(`refuses a login with ${code}, once`, async () => {
    const phone = await shared.phone();
    const auth = await linkedAuth(shared, phone);
    await phone.end(ending, 'opening');
    await using refused = new BaileysClient(shared, auth);
    expect((await refused.closed()).code).toBe(code);
    expect(refused.updates.some(({ connection }) => connection === 'open')).toBe(false);
    await using client = await new BaileysClient(shared, auth).open();
    expect(client.socket.user?.id).toContain(phone.number);
    expect(phone.counts.atOnce).toBe(1);
  });
});

describe('a server that goes silent', () => {
  beforeAll(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] }));
  afterAll(() => void vi.useRealTimers());

  /** The client's clock runs on until it closes. */
  async function closeCode(client: BaileysClient): Promise<number | undefined> {
    for (;;) {
      await vi.advanceTimersByTimeAsync(30_000);
      const closed = await Promise.race([client.closed(), setImmediate(undefined)]);
      if (closed !== undefined) return closed.code;
    }
  }

  test('is noticed by an open connection', async () => {
    const phone = await shared.phone();
    await using client = await new BaileysClient(shared, await linkedAuth(shared, phone)).open();
    await phone.online();
    await phone.end({ kind: 'silence' });
    expect(phone.isOnline).toBe(false);
    expect(await closeCode(client)).toBe(408);
  });

  test('is noticed by one that opens', async () => {
    const phone = await shared.phone();
    const auth = await linkedAuth(shared, phone);
    await phone.end({ kind: 'silence' }, 'opening');
    await using client = new BaileysClient(shared, auth);
    expect(await closeCode(client)).toBe(408);
    expect(phone.counts.logins).toBe(0);
  });
});

describe('the offline marker', () => {
  test('is withheld where a test says so', async () => {
    const phone = await shared.phone();
    const auth = await linkedAuth(shared, phone);
    phone.withholdsOfflineMarker(true);
    await using client = await new BaileysClient(shared, auth).open();
    await client.roundTrip();
    expect(client.updates.some((update) => update.receivedPendingNotifications)).toBe(false);
  });
});

test('a child process trusts the server through the preload', async () => {
  const print = `
    import { WA_CERT_DETAILS } from '@whiskeysockets/baileys';
    process.stdout.write(WA_CERT_DETAILS.PUBLIC_KEY.toString('hex'));`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', print],
    { env: { ...process.env, ...trustVariables(shared) } },
  );
  expect(stdout).toBe(shared.rootKey);
});

describe('strictness', () => {
  async function disposed(server: WhatsAppServer): Promise<string> {
    try {
      await server[Symbol.asyncDispose]();
      return '';
    } catch (error) {
      return String(error);
    }
  }

  test('a stanza nobody knows makes the end of the test fail', async () => {
    const server = await startWhatsAppServer();
    const phone = await server.phone();
    const client = await new BaileysClient(server, await linkedAuth(server, phone)).open();
    await client.socket.sendNode({ tag: 'novelty', attrs: { type: 'x' } });
    await client.roundTrip();
    await client[Symbol.asyncDispose]();
    expect(server.unhandled).toEqual(['<novelty type=x>']);
    expect(await disposed(server)).toContain('unhandled stanza <novelty type=x>');
  });

  test('a stream that is not WhatsApp makes it fail too', async () => {
    const server = await startWhatsAppServer();
    const socket = new WebSocket(server.url);
    const closed = new Promise((resolve) => socket.addEventListener('close', resolve));
    socket.addEventListener('open', () => socket.send(randomBytes(64)));
    await closed;
    expect(await disposed(server)).toContain('does not begin with the WhatsApp header');
  });
});
