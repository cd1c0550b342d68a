// Key material stays out of log, console, statuses and alerts; what the libraries say passes a sieve.

import { createRequire } from 'node:module';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBaileysLogger, quietConsole } from '../../../src/channels/whatsapp/transport.ts';
import { createMemoryHost } from '../../support/memory-host.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { startWhatsAppServer } from '../../support/whatsapp-server/server.ts';
import { trustWhatsAppServer } from '../../support/whatsapp-server/trust.ts';
import { createLinkBench, type LinkBench } from './link-bench.ts';

const METHODS = ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const;
const printed: string[] = [];
const originals = METHODS.map((method) => console[method]);

beforeEach(() => {
  printed.length = 0;
  for (const method of METHODS) {
    console[method] = (...values: unknown[]) => void printed.push(shown(values));
  }
});
afterEach(() => {
  METHODS.forEach((method, place) => {
    console[method] = originals[place] ?? console[method];
  });
});

const shown = (value: unknown) =>
  inspect(value, { depth: null, maxArrayLength: null, maxStringLength: null, breakLength: 1e6 });

/** The ways a key may be written. */
function spellings(key: Uint8Array): readonly string[] {
  const hex = Buffer.from(key).toString('hex');
  const base64 = Buffer.from(key).toString('base64');
  return [
    hex,
    base64,
    base64.replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_'),
    (hex.match(/../g) ?? []).join(' '),
    [...key].join(', '),
    [...key].join(','),
  ];
}

/** Every private key and every other base64 text of that size in what the channel has stored. */
async function secretsOf(bench: LinkBench): Promise<readonly Uint8Array[]> {
  const { creds } = bench.vault.auth;
  const stored = await Promise.all(
    ['creds/', 'key/', 'old/'].map((prefix) => bench.host.state.list(prefix)),
  );
  const texts = stored.flat().map(({ value }) => value);
  const encoded = texts.flatMap(
    (text) => text.match(/[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{44}/g) ?? [],
  );
  return [
    creds.noiseKey.private,
    creds.signedIdentityKey.private,
    creds.signedPreKey.keyPair.private,
    creds.pairingEphemeralKeyPair.private,
    ...[creds.advSecretKey, ...encoded].map((text) => Buffer.from(text, 'base64')),
  ];
}

describe('the link', () => {
  const servers = startWhatsAppServer();
  const trust = servers.then(({ rootKey }) => trustWhatsAppServer(rootKey));
  afterAll(async () => {
    (await trust)[Symbol.dispose]();
    await (await servers)[Symbol.asyncDispose]();
  });

  it('writes no key material anywhere, whatever goes wrong', async () => {
    const server = await servers;
    await trust;
    const bench = await createLinkBench(server);
    const login = bench.begin({ phoneNumber: bench.phone.number });
    await login.step('show_code');
    await bench.phone.scan((await login.step('show_qr')).qr);
    await login.step('done');
    await bench.phone.online();
    const contact = await server.contact(bench.phone);
    await contact.writes('hello');
    await bench.answered();
    await contact.losesSession();
    await contact.writes('lost');
    server.fault({ direction: 'down', stanza: 'message', effect: { kind: 'corrupt' } });
    await contact.writes('damaged');
    await bench.takenIn();
    await bench.quiet(60_000);
    await bench.phone.end({ kind: 'drop' });
    await bench.host.until(({ statuses }) => statuses.at(-1)?.kind === 'degraded');
    await bench.retry();
    await bench.phone.online();
    const secrets = await secretsOf(bench);
    await bench.phone.unlink();
    await bench.host.until(({ alerts }) => alerts.length > 0);
    await bench.stop();
    server.clearFaults();

    const { logged, statuses, alerts } = bench.host;
    const output = shown([printed, logged, statuses, alerts]);
    const all = [...secrets, ...(await secretsOf(bench))];
    expect(all.length).toBeGreaterThan(20);
    const found = all.filter((key) => spellings(key).some((spelling) => output.includes(spelling)));
    expect(found).toEqual([]);
    expect(logged).toContainEqual({
      message: 'libsignal console output dropped',
      fields: { count: expect.any(Number) },
    });
  });
});

describe('the console', () => {
  /** libsignal's own code prints the session given. */
  const printBySignal = () => {
    const { SessionRecord } = createRequire(import.meta.url)('libsignal');
    const session = { indexInfo: { closed: -1 }, secret: 'ratchet' };
    new SessionRecord().closeSession(session);
  };

  it('would show a session without the filter', () => {
    printBySignal();
    expect(printed.join()).toContain('ratchet');
  });

  it('shows nothing of libsignal’s and everything of others', () => {
    const quiet = quietConsole();
    printBySignal();
    console.info('ours', 1);
    quiet[Symbol.dispose]();
    expect(printed).toEqual([shown(['ours', 1])]);
    expect(quiet.dropped).toBe(1);
  });

  it('is as before afterwards, also where somebody else replaced it meanwhile', () => {
    const before = console.log;
    const first = quietConsole();
    const second = quietConsole();
    first[Symbol.dispose]();
    printBySignal();
    expect(printed).toEqual([]);
    second[Symbol.dispose]();
    printBySignal();
    expect(printed).toHaveLength(1);
    console.log('through');
    expect(printed).toHaveLength(2);
    quietConsole()[Symbol.dispose]();
    expect(typeof before).toBe('function');
  });

  it('keeps the stack depth of errors', () => {
    const { stackTraceLimit } = Error;
    const quiet = quietConsole();
    console.log('ours');
    quiet[Symbol.dispose]();
    expect(Error.stackTraceLimit).toBe(stackTraceLimit);
  });
});

describe('what the library logs', () => {
  const clock = createMovableClock();
  const record = () => {
    const host = createMemoryHost(clock);
    return { host, logger: createBaileysLogger(host) };
  };

  it('is cut down to fixed words and harmless numbers', () => {
    const { host, logger } = record();
    const key = Buffer.alloc(32, 7);
    const error = new Error('No session for 15551234567:3@s.whatsapp.net');
    logger.error(
      { key, node: { attrs: { from: '15551234567@s.whatsapp.net' } }, retryCount: 2, err: error },
      'failed to decrypt message',
    );
    expect(host.logged).toEqual([
      {
        message: 'whatsapp library error',
        fields: {
          words: 'failed to decrypt message',
          retryCount: 2,
          errorName: 'Error',
          errorWords: 'No session for',
        },
      },
    ]);
  });

  it.each([
    ['Invalid LID-PN mapping: 123@lid, 456@s.whatsapp.net', 'Invalid LID-PN mapping'],
    ['15551234567@s.whatsapp.net is unknown', ''],
    ['key c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0 refused', 'key'],
    ['token abcdefghijklmnopqrstuvwxyzabcdef refused', 'token'],
    ['Unexpected token "hi there" in JSON', 'Unexpected token'],
  ])('loses its variable part: %s', (text, words) => {
    const { host, logger } = record();
    logger.warn(text);
    expect(host.logged.map(({ fields }) => fields['words'])).toEqual([words]);
  });

  it('is written once a minute, with how often it came', async () => {
    const { host, logger } = record();
    for (let count = 0; count < 10_000; count += 1) logger.error({}, 'failed to decrypt message');
    expect(host.logged).toHaveLength(1);
    await clock.advance(60_000);
    logger.error({}, 'failed to decrypt message');
    expect(host.logged.at(-1)?.fields).toEqual({
      words: 'failed to decrypt message',
      suppressed: 9999,
    });
  });

  it('is nothing below a warning', () => {
    const { host, logger } = record();
    logger.info({ node: 'secret' }, 'logging in...');
    logger.debug('secret');
    logger.trace('secret');
    logger.child({ class: 'ns' }).info('secret');
    expect(host.logged).toEqual([]);
    expect(logger.level).toBe('warn');
  });
});
