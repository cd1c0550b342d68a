// `nanobot channels login whatsapp` as a person sees it: the QR code on the terminal read back as the
// phone's camera does, the code typed, and what becomes of it.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type GatewayProcess, makeTestHome } from '../support/gateway-process.ts';
import { countPrintedQr, readPrintedQr } from '../support/qr-reader.ts';
import type { Phone, WhatsAppServer } from '../support/whatsapp-server/contract.ts';
import { startWhatsAppServer } from '../support/whatsapp-server/server.ts';
import { trustVariables } from '../support/whatsapp-server/trust.ts';
import { runNanobot, type TemporaryHome, temporaryHome } from './run-nanobot.ts';

const SOON = { timeout: 45_000 };
const LOGIN = ['channels', 'login', 'whatsapp'];

let home: TemporaryHome;
let server: WhatsAppServer;
let phone: Phone;

beforeEach(async () => {
  home = await temporaryHome();
  server = await startWhatsAppServer();
  phone = await server.phone({ number: '491511234567' });
  await home.writeConfig({ version: 1, channels: { whatsapp: { socketUrl: server.url } } });
});
afterEach(async () => {
  await home[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

type OnOutput = NonNullable<Parameters<typeof runNanobot>[1]['onOutput']>;

const nanobot = (args: readonly string[], onOutput: OnOutput = () => undefined) =>
  runNanobot(args, { home: home.path, env: trustVariables(server), onOutput });

const onDisk = async () =>
  JSON.parse(await readFile(join(home.path, 'config.json'), 'utf8')).channels.whatsapp;

/** Calls back once, with the first that is found in what was printed. */
function first<T>(find: (printed: string) => T | undefined, then: (found: T) => unknown): OnOutput {
  let isFound = false;
  return (printed) => {
    const found = isFound ? undefined : find(printed);
    if (found === undefined) return;
    isFound = true;
    then(found);
  };
}

describe('linking without a running gateway', () => {
  test('by the QR code: the account is linked, the settings are written, the owner is asked for', async () => {
    const scan = first(readWhole, (qr) => phone.scan(qr));
    const { code, stdout, stderr } = await nanobot([...LOGIN, '--allow', '+49 151 7654321'], scan);
    expect(stderr).toContain('may block the number');
    expect(stdout).toContain('Linked: +491511234567.');
    expect(stdout).toMatch(/https:\/\/wa\.me\/491511234567\?text=\/start%20[A-Z0-9]{10}/);
    expect(code).toBe(0);
    expect(phone.linked).toBe(true);
    expect(await onDisk()).toMatchObject({
      enabled: true,
      selfChat: false,
      allowFrom: ['+491517654321'],
    });
    const { found, levelOf } = await examine();
    expect(levelOf('whatsapp-link')).toBe('ok');
    expect(JSON.stringify(found)).toContain('linked to +491511234567');
  });

  test('by the code typed on the phone, for the person’s own number', async () => {
    const type = first(shownCode, (code) => phone.typesCode(code));
    const args = [...LOGIN, '--self', '--phone', '+49 151 123-4567'];
    const { code, stdout } = await nanobot(args, type);
    expect([code, phone.linked]).toEqual([0, true]);
    expect(stdout).toContain('Message yourself');
    expect(stdout).not.toContain('wa.me/491511234567');
    const strangers = 'closed';
    expect(await onDisk()).toMatchObject({
      selfChat: true,
      strangers,
      phoneNumber: '491511234567',
    });
  });

  test('as the last step of the onboarding, all by flags', async () => {
    const scan = first(readWhole, (qr) => phone.scan(qr));
    const flags = ['--yes', '--no-telegram', '--no-email', '--whatsapp', '--whatsapp-self'];
    const { code, stdout } = await nanobot(['onboard', ...flags], scan);
    expect([code, phone.linked]).toEqual([0, true]);
    expect(stdout).toContain('Setup finished.');
  });

  test('the first who sends the pairing message becomes the owner, and stays it when the phone is linked anew', async () => {
    const stranger = await server.contact(phone, { name: 'Eve' });
    const owner = await server.contact(phone, { name: 'Ada', number: '491517654321' });
    const scan = first(readWhole, (qr) => phone.scan(qr));
    const pair = first(
      (printed) => /\/start%20([A-Z0-9]{10})\b/.exec(printed)?.[1],
      async (right) => {
        await stranger.writes('/start AAAAAAAAAA');
        await owner.writes(`/start ${right}`);
      },
    );
    const { code, stdout } = await nanobot([...LOGIN, '--pair-wait', '30'], (...given) => {
      scan(...given);
      pair(...given);
    });
    expect(stdout).toContain('Paired with Ada.');
    expect(code).toBe(0);
    await owner.sees(({ text }) => text.includes('You are paired'));
    const pairs = await nanobot(['pair', 'list', '--json']);
    expect(JSON.parse(pairs.stdout).approved).toMatchObject([{ role: 'owner', name: 'Ada' }]);
    expect(stranger.seen).toEqual([]);
    await phone.unlink();
    const again = first(readWhole, (qr) => phone.scan(qr));
    const relinked = await nanobot([...LOGIN, '--pair-wait', '30'], again);
    expect(relinked.stdout).toContain('Ada is already the owner.');
    expect(relinked.stdout).not.toContain('wa.me/');
    expect(relinked.code).toBe(0);
  });

  test('Ctrl+C leaves nothing half made: the next try links as if it were the first', async () => {
    const stopped = await nanobot([...LOGIN, '--phone', '491511234567'], (printed, interrupt) => {
      if (shownCode(printed) !== undefined) interrupt();
    });
    expect(stopped.code).toBe(130);
    expect(stopped.stderr).toContain('nothing was linked');
    const { levelOf } = await examine();
    expect(levelOf('whatsapp-link')).toBe('warn');
    const scan = first(readWhole, (qr) => phone.scan(qr));
    expect((await nanobot([...LOGIN, '--phone', ''], scan)).code).toBe(2);
    expect((await nanobot(LOGIN, scan)).code).toBe(0);
    expect(phone.linked).toBe(true);
  });

  test('a refusal ends it with its reason and what to do', async () => {
    phone.refuseLogins({ kind: 'failure', reason: 403 });
    const scan = first(readWhole, (qr) => phone.scan(qr));
    const { code, stderr } = await nanobot(LOGIN, scan);
    expect(code).toBe(1);
    expect(stderr).toMatch(/nanobot: .*restricted or banned.*\. Open WhatsApp on the phone/);
  });

  test('no other program’s noise and no secret gets onto the terminal or into the log', async () => {
    const scan = first(readWhole, (qr) => phone.scan(qr));
    const { stdout, stderr } = await nanobot(LOGIN, scan);
    const log = await logs();
    expect(log).not.toBe('');
    for (const text of [stdout, stderr, log]) {
      expect(text).not.toMatch(/privKey|<Buffer|Closing session|SessionEntry/);
    }
  });
});

describe('linking through the gateway that runs', () => {
  const gatewayConfig = (whatsapp: object) => ({
    gateway: { port: 0 },
    channels: { whatsapp: { socketUrl: server.url, ...whatsapp } },
  });

  test('turns the channel on there, links it, and leaves the gateway running', async () => {
    await using gateways = await makeTestHome(gatewayConfig({}));
    const gateway = await gateways.start(trustVariables(server));
    const inHome = { home: gateways.path, env: trustVariables(server) };
    const off = await runNanobot(['channels', 'restart', 'whatsapp'], inHome);
    expect([off.code, off.stderr]).toEqual([1, expect.stringContaining('WhatsApp is off')]);
    const scan = first(readWhole, (qr) => phone.scan(qr));
    const login = await runNanobot([...LOGIN, '--allow', '*'], { ...inHome, onOutput: scan });
    expect(login.stdout).toContain('Linked: +491511234567.');
    expect(login.code).toBe(0);
    const status = await runNanobot(['channels', 'status'], inHome);
    expect(status.stdout).toMatch(/^whatsapp +on as \+491511234567, last active \d+s ago$/m);
    const again = await runNanobot([...LOGIN, '--allow', '*'], inHome);
    expect([again.code, countPrintedQr(again.stdout)]).toEqual([0, 0]);
    const loginsBefore = phone.counts.logins;
    expect((await runNanobot(['channels', 'restart', 'whatsapp'], inHome)).code).toBe(0);
    await expect.poll(() => phone.counts.logins, SOON).toBeGreaterThan(loginsBefore);
    expect(phone.counts.atOnce).toBe(1);
    await expect.poll(() => readyOf(gateway), SOON).toBe(200);
    expect(await gateway.stop()).toBe(0);
  });

  test('a link that another program took over stands still until a restart is asked for', async () => {
    await using gateways = await makeTestHome(gatewayConfig({ enabled: true, selfChat: true }));
    const gateway = await gateways.start(trustVariables(server));
    const inHome = { home: gateways.path, env: trustVariables(server) };
    const scan = first(readWhole, (qr) => phone.scan(qr));
    await runNanobot(LOGIN, { ...inHome, onOutput: scan });
    await phone.online();
    await phone.end({ kind: 'conflict' });
    await phone.offline();
    const ready = () => readyOf(gateway);
    await expect.poll(ready, SOON).toBe(503);
    await gateway.printed(/^whatsapp stopped: another program took over .* restart whatsapp/m);
    const status = () => runNanobot(['channels', 'status'], inHome);
    expect((await status()).stdout).toMatch(/^whatsapp +stopped: another program took over/m);
    expect((await runNanobot(['channels', 'restart', 'whatsapp'], inHome)).code).toBe(0);
    await phone.online();
    await expect.poll(ready, SOON).toBe(200);
    expect((await status()).stdout).toMatch(/^whatsapp +on as/m);
    const restart = () =>
      fetch(`${gateway.address}/api/v1/setup/channels/whatsapp/restart`, {
        method: 'POST',
        headers: { ...gateway.credentials, 'content-type': 'application/json' },
        body: '{}',
      });
    await Promise.all(Array.from({ length: 4 }, restart));
    await expect.poll(ready, SOON).toBe(200);
    expect(phone.counts.atOnce).toBe(1);
  });

  test('Ctrl+C gives the attempt up there too', async () => {
    await using gateways = await makeTestHome(gatewayConfig({ enabled: true }));
    await gateways.start(trustVariables(server));
    const inHome = { home: gateways.path, env: trustVariables(server) };
    const stopped = await runNanobot(LOGIN, {
      ...inHome,
      onOutput: (printed, interrupt) => {
        if (readWhole(printed) !== undefined) interrupt();
      },
    });
    expect([stopped.code, phone.linked]).toEqual([130, false]);
    const scan = first(readWhole, (qr) => phone.scan(qr));
    const login = await runNanobot(LOGIN, { ...inHome, onOutput: scan });
    expect([login.code, phone.linked]).toEqual([0, true]);
  });

  test('a gateway without a web page is named, and left alone', async () => {
    await using alone = await startAlone();
    const { code, stderr } = await nanobot(LOGIN);
    expect(code).toBe(4);
    expect(stderr).toContain(`process ${alone.pid}`);
    expect(stderr).toContain('without a web page');
  });

  test('restarting a channel needs one that runs', async () => {
    const { code, stderr } = await nanobot(['channels', 'restart', 'whatsapp']);
    expect([code, stderr]).toEqual([6, expect.stringContaining('nanobot gateway')]);
    expect((await nanobot(['channels', 'restart', 'whatsap'])).stderr).toContain('try whatsapp');
  });
});

const readyOf = async ({ address, credentials: headers }: GatewayProcess) =>
  (await fetch(`${address}/readyz`, { headers })).status;

/** `nanobot whatsapp`, until disposed. */
async function startAlone(): Promise<AsyncDisposable & { readonly pid: number | undefined }> {
  const started = Promise.withResolvers<{ stop: () => void; pid: number | undefined }>();
  const run = nanobot(['whatsapp'], (printed, stop, pid) => {
    if (printed.includes('Ctrl+C')) started.resolve({ stop, pid });
  });
  const { stop, pid } = await started.promise;
  return {
    pid,
    async [Symbol.asyncDispose]() {
      stop();
      expect((await run).code).toBe(0);
    },
  };
}

async function examine() {
  const { stdout } = await nanobot(['doctor', '--json']);
  const found: readonly { readonly check: string; readonly level: string }[] = JSON.parse(stdout);
  return { found, levelOf: (check: string) => found.find((one) => one.check === check)?.level };
}

/** The eight characters without their hyphen. */
function shownCode(printed: string): string | undefined {
  return /^ +([A-Z0-9]{4}-[A-Z0-9]{4})$/m.exec(printed)?.[1]?.replace('-', '');
}

/** Only when all of it is there. */
function readWhole(printed: string): string | undefined {
  if (countPrintedQr(printed) === 0 || !printed.includes('Linked devices')) return undefined;
  return readPrintedQr(printed);
}

async function logs(): Promise<string> {
  const folder = join(home.path, 'logs');
  const days = await Array.fromAsync(await readdir(folder), (name) =>
    readFile(join(folder, name), 'utf8'),
  );
  return days.join('');
}
