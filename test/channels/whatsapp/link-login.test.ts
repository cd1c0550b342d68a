// Logging in, against the WhatsApp server.

import { describe, expect, it } from 'vitest';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { createLinkBench, type LinkBench } from './link-bench.ts';

const server = await trustedWhatsAppServer();

const account = ({ phone }: LinkBench) => `+${phone.number}`;

async function expectNothingLeft(bench: LinkBench) {
  expect(bench.vault.account).toBeUndefined();
  expect(bench.vault.auth.creds.me).toBeUndefined();
  expect(await bench.rows('creds/')).toEqual([]);
  expect(await bench.rows('old/')).toEqual([]);
  expect(bench.sockets.attached).toBe(0);
  const { statuses } = await bench.host.until((host) => isIdle(host.statuses.at(-1)) && host);
  expect(statuses.at(-1)).toEqual({
    kind: 'stopped',
    reason: 'not linked',
    remedy: expect.stringContaining('nanobot channels login whatsapp'),
  });
}

const isIdle = (status: { readonly kind: string } | undefined) => status?.kind === 'stopped';

describe('linking', () => {
  it('by QR code ends when the account is logged in', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin();
    const { qr, expiresAt } = await login.step('show_qr');
    expect(expiresAt).toBe(bench.clock.now() + 60_000);
    await bench.phone.scan(qr);
    expect(await login.end).toEqual({ kind: 'done', account: account(bench) });
    await bench.phone.online();
    expect(bench.host.statuses.at(-1)).toMatchObject({ kind: 'running', account: account(bench) });
    expect(bench.host.alerts).toEqual([]);
    expect(bench.phone.counts).toMatchObject({ registrations: 1, logins: 1, atOnce: 1 });
  });

  it('by the code typed on the phone works with the QR code shown beside it', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin({ phoneNumber: bench.phone.number });
    await login.step('show_qr');
    const { code, phoneNumber } = await login.step('show_code');
    expect(phoneNumber).toBe(bench.phone.number);
    expect(code).toMatch(/^[A-Z0-9]{8}$/);
    await bench.phone.typesCode(code);
    expect(await login.end).toEqual({ kind: 'done', account: account(bench) });
  });

  it('offers a code for the number in the settings, however it is written', async () => {
    const { number } = await server.phone({ number: '15559990001' });
    await using bench = await createLinkBench(server, { phoneNumber: '+1 (555) 999-0001' });
    const login = bench.begin();
    expect(await login.step('show_code')).toMatchObject({ phoneNumber: number });
  });

  it('takes the right code after a wrong one', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin({ phoneNumber: bench.phone.number });
    const { code } = await login.step('show_code');
    await expect(bench.phone.typesCode('AAAAAAAA')).rejects.toThrow('the code is wrong');
    await bench.phone.typesCode(code);
    expect(await login.end).toEqual({ kind: 'done', account: account(bench) });
  });

  it('shows a new QR code when a wrong code has spoilt the one on the screen', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin({ phoneNumber: bench.phone.number });
    await login.step('show_code');
    await expect(bench.phone.typesCode('AAAAAAAA')).rejects.toThrow('the code is wrong');
    const { qr } = await login.step('show_qr');
    await expect(bench.phone.scan(qr)).rejects.toThrow();
    await login.first((s) => s.kind === 'progress' && s.text.includes('retrying'));
    await bench.retry();
    const next = await login.first((s) => s.kind === 'show_qr' && s.qr !== qr);
    await bench.phone.scan(next.kind === 'show_qr' ? next.qr : '');
    expect(await login.end).toEqual({ kind: 'done', account: account(bench) });
  });

  it('says so, and shows none, when WhatsApp sent no code for the number', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin({ phoneNumber: '4915100000000' });
    const text = expect.stringContaining('sent no code for +4915100000000');
    await login.first((step) => step.kind === 'progress' && step.text.includes('no code'));
    expect(login.steps).toContainEqual({ kind: 'progress', text });
    expect(login.steps.map(({ kind }) => kind)).not.toContain('show_code');
  });

  it('refuses a number without a country code before it connects', async () => {
    await using bench = await createLinkBench(server);
    expect(await bench.begin({ phoneNumber: '0151 234' }).end).toMatchObject({
      kind: 'failed',
      reason: 'the phone number is not an international number',
    });
    expect(bench.sockets.made).toBe(0);
  });

  it('is not done before the first login was let in', async () => {
    await using bench = await createLinkBench(server);
    bench.phone.refuseLogins({ kind: 'failure', reason: 503 });
    const login = bench.begin();
    await bench.phone.scan((await login.step('show_qr')).qr);
    await bench.host.until(({ statuses }) =>
      statuses.some((s) => s.kind === 'degraded' && s.reason.includes('not available')),
    );
    expect(login.steps.at(-1)).toMatchObject({ kind: 'progress' });
    bench.phone.refuseLogins(undefined);
    await bench.retry();
    expect(await login.end).toEqual({ kind: 'done', account: account(bench) });
  });

  it('survives a restart between the phone’s confirmation and the first login', async () => {
    await using bench = await createLinkBench(server);
    bench.phone.refuseLogins({ kind: 'drop' });
    const login = bench.begin();
    await bench.phone.scan((await login.step('show_qr')).qr);
    await bench.host.until(({ statuses }) => statuses.at(-1)?.kind === 'degraded');
    bench.phone.refuseLogins(undefined);
    await bench.restart();
    await bench.phone.online();
    expect(await login.end).toMatchObject({ kind: 'failed', reason: 'the channel stopped' });
    expect(bench.phone.counts).toMatchObject({ registrations: 1 });
  });

  it('only says who is linked while the account is online', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    const { made } = bench.sockets;
    expect(await bench.begin().end).toEqual({ kind: 'done', account: account(bench) });
    const other = bench.begin({ phoneNumber: '4915199999999' });
    await other.first((step) => step.kind === 'progress' && step.text.includes('linked already'));
    expect(await other.end).toEqual({ kind: 'done', account: account(bench) });
    expect(bench.sockets.made).toBe(made);
    expect(bench.phone.isOnline).toBe(true);
  });
});

describe('an attempt that fails leaves nothing behind', () => {
  it('when nobody scans in time', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin({ phoneNumber: bench.phone.number });
    await login.step('show_code');
    await bench.quiet(170_000);
    await bench.clock.advance(15_000);
    expect(await login.end).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('in time'),
      remedy: expect.stringContaining('nanobot channels login whatsapp'),
    });
    await expectNothingLeft(bench);
  });

  it('when the person gives up with the code on the screen', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin({ phoneNumber: bench.phone.number });
    await login.step('show_code');
    login.abort();
    expect(await login.end).toMatchObject({ kind: 'failed', reason: 'the login was cancelled' });
    await expectNothingLeft(bench);
    await bench.linked();
    expect(bench.phone.linked).toBe(true);
  });

  it('when the channel stops with the code on the screen', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin({ phoneNumber: bench.phone.number });
    await login.step('show_code');
    await bench.restart();
    expect(await login.end).toMatchObject({ kind: 'failed', reason: 'the channel stopped' });
    await expectNothingLeft(bench);
  });

  it('when another login takes over', async () => {
    await using bench = await createLinkBench(server);
    const first = bench.begin({ phoneNumber: bench.phone.number });
    await first.step('show_code');
    const second = bench.begin();
    expect(await first.end).toMatchObject({ reason: 'another login was started' });
    await bench.phone.scan((await second.step('show_qr')).qr);
    expect(await second.end).toEqual({ kind: 'done', account: account(bench) });
    expect(bench.phone.counts.atOnce).toBe(1);
  });

  it('when the connection drops, and goes on with new codes', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin({ phoneNumber: bench.phone.number });
    const { code } = await login.step('show_code');
    await bench.answered();
    await bench.phone.end({ kind: 'drop' });
    await login.first((s) => s.kind === 'progress' && s.text.includes('retrying'));
    await bench.retry();
    const isNew = await login.first((s) => s.kind === 'show_code' && s.code !== code);
    if (isNew.kind !== 'show_code') throw new Error('no new code');
    await bench.phone.typesCode(isNew.code);
    expect(await login.end).toEqual({ kind: 'done', account: account(bench) });
    expect(bench.phone.counts).toMatchObject({ logins: 1 });
  });

  it('when WhatsApp cannot be reached again and again', async () => {
    await using bench = await createLinkBench(server, { socketUrl: 'ws://127.0.0.1:1/' });
    const login = bench.begin();
    for (let tries = 1; tries < 5; tries += 1) {
      await bench.host.until(
        ({ statuses }) =>
          statuses.filter((s) => s.kind === 'degraded' && s.retryAt !== undefined).length >= tries,
      );
      await bench.retry();
    }
    expect(await login.end).toMatchObject({
      kind: 'failed',
      reason: 'WhatsApp cannot be reached',
    });
    await expectNothingLeft(bench);
  });
});

describe('the confirmation of a pairing', () => {
  it('leaves only when the credentials are stored', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin();
    const { qr } = await login.step('show_qr');
    const gate = Promise.withResolvers<void>();
    const store = bench.host.state.setMany;
    const asked = new Promise<void>((resolve) => {
      bench.host.state.setMany = async (rows) => {
        resolve();
        await gate.promise;
        return store(rows);
      };
    });
    const scanned = bench.phone.scan(qr);
    await asked;
    await bench.clock.advance(1000);
    expect(bench.phone.linked).toBe(false);
    gate.resolve();
    await scanned;
    expect(await login.end).toEqual({ kind: 'done', account: account(bench) });
  });

  it('never leaves where they cannot be stored', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin();
    const { qr } = await login.step('show_qr');
    const store = bench.host.state.setMany;
    bench.host.state.setMany = async () => {
      throw new Error('the disk is full');
    };
    await expect(bench.phone.scan(qr)).rejects.toThrow('the client left');
    await login.first((s) => s.kind === 'progress' && s.text.includes('could not be stored'));
    expect(bench.phone.linked).toBe(false);
    bench.host.state.setMany = store;
  });
});
