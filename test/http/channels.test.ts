// The channels over HTTP: what a person sees and may do, and who may not.

import { describe, expect, it } from 'vitest';
import { NanobotError } from '../../src/kernel/message/errors.ts';
import { readSvgQr } from '../support/qr-reader.ts';
import { off, type ScriptedControl, scriptedControl, unlinked } from './channel-control.ts';
import { type HttpRig, type ServerEvent, startHttp } from './http-rig.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const SOON = { timeout: 45_000 };
const LINK_TELEGRAM = '/api/v1/setup/channels/telegram';
const LOGIN = '/api/v1/setup/channels/pigeon/login';

/** Begins a login and reads what comes until the server ends it. */
async function logIn(rig: HttpRig, body: object = {}, headers = {}) {
  const hangUp = new AbortController();
  const response = await fetch(new URL(LOGIN, rig.address), {
    method: 'POST',
    headers: { ...JSON_TYPE, ...rig.credentials, ...headers },
    body: JSON.stringify(body),
    signal: hangUp.signal,
  });
  return { response, hangUp: () => hangUp.abort(), steps: () => stepsIn(response) };
}

async function stepsIn(response: Response): Promise<readonly ServerEvent['data'][]> {
  const blocks = (await response.text()).split('\n\n').filter((block) => block.startsWith('data'));
  return blocks.map((block) => JSON.parse(block.slice('data: '.length)));
}

async function started(control: ScriptedControl, count = 1) {
  await expect.poll(() => control.logins.length, SOON).toBe(count);
}

describe('the list of channels', () => {
  it('tells their state and where an account can be connected', async () => {
    const control = scriptedControl(off('carrier'), unlinked('pigeon'));
    await using rig = await startHttp({ control });
    const { status, headers, body } = await rig.ask('/api/v1/setup');
    expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
    expect(JSON.parse(body)).toMatchObject({
      channels: [
        { name: 'carrier', state: 'off', remedy: expect.any(String), canLogIn: false },
        { name: 'pigeon', state: 'stopped', reason: 'no account is linked', canLogIn: true },
      ],
    });
  });
});

describe('connecting an account', () => {
  it('shows each step, the QR code with a picture of it, and ends with the last', async () => {
    const control = scriptedControl(unlinked('pigeon'));
    await using rig = await startHttp({ control });
    const { response, steps } = await logIn(rig, { phoneNumber: '491511234567' });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    await started(control);
    expect(control.logins[0]?.options).toEqual({ phoneNumber: '491511234567' });
    control.step({ kind: 'progress', text: 'connecting' });
    control.step({ kind: 'show_qr', qr: 'https://example.org/#secret', expiresAt: 5 });
    control.step({ kind: 'show_code', code: 'ABCD1234', phoneNumber: '491511234567' });
    control.step({ kind: 'done', account: '+491511234567' });
    const all = await steps();
    expect(all).toMatchObject([
      { kind: 'progress', text: 'connecting' },
      { kind: 'show_qr', qr: 'https://example.org/#secret', expiresAt: 5 },
      { kind: 'show_code', code: 'ABCD1234' },
      { kind: 'done', account: '+491511234567' },
    ]);
    expect(readSvgQr((all[1] as { readonly image: string }).image)).toBe(
      'https://example.org/#secret',
    );
  });

  it('is given up when the person leaves, and when the server closes', async () => {
    const control = scriptedControl(unlinked('pigeon'));
    const rig = await startHttp({ control });
    const left = await logIn(rig);
    const kept = await logIn(rig);
    await started(control, 2);
    left.hangUp();
    await expect.poll(() => control.logins[0]?.signal.aborted, SOON).toBe(true);
    expect(control.logins[1]?.signal.aborted).toBe(false);
    await rig.close();
    expect(control.logins[1]?.signal.aborted).toBe(true);
    await kept.response.text().catch(() => 'cut off');
    expect(rig.clock.pending).toBe(0);
  });

  it('that breaks tells its reason as the last step', async () => {
    const control = scriptedControl(unlinked('pigeon'));
    await using rig = await startHttp({ control });
    const known = await logIn(rig);
    await started(control);
    control.fail(new NanobotError('test', 'the wire is cut'));
    expect(await known.steps()).toMatchObject([{ kind: 'failed', reason: 'the wire is cut' }]);
    const unknown = await logIn(rig);
    await started(control, 2);
    control.fail(new Error('secret inner workings'));
    const told = await unknown.steps();
    expect(told).toMatchObject([{ kind: 'failed' }]);
    expect(JSON.stringify(told)).not.toContain('inner workings');
  });

  it.each([
    ['a channel that is off', '/api/v1/setup/channels/carrier/login', {}, 409],
    ['a channel nobody knows', '/api/v1/setup/channels/dove/login', {}, 404],
    ['a name that is none', '/api/v1/setup/channels/__proto__/login', {}, 400],
    ['a number with a plus', LOGIN, { phoneNumber: '+49151123' }, 400],
    ['a number too short', LOGIN, { phoneNumber: '1234567' }, 400],
    ['a further account of a channel with one', LINK_TELEGRAM, { account: 'work' }, 400],
    ['a key nobody knows', LOGIN, { phone: '491511234567' }, 400],
  ])('is refused for %s', async (_name, path, body, status) => {
    const control = scriptedControl(off('carrier'), unlinked('pigeon'));
    await using rig = await startHttp({ control });
    expect((await rig.post(path, body)).status).toBe(status);
    expect(control.logins).toEqual([]);
  });

  it.each([
    ['without the token', {}, 401],
    ['with a wrong one', { authorization: 'Bearer wrong' }, 401],
    ['from another page', { authorization: 'Bearer right', origin: 'http://evil.example' }, 403],
    ['as a form', { authorization: 'Bearer right', 'content-type': 'text/plain' }, 415],
  ])('is nobody’s %s', async (_name, headers, status) => {
    const control = scriptedControl(unlinked('pigeon'));
    await using rig = await startHttp({ control, token: 'right' });
    const answers = [
      await rig.post(LOGIN, {}, headers),
      await rig.post('/api/v1/setup/channels/pigeon/restart', {}, headers),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([status, status]);
    expect([control.logins, control.restarts]).toEqual([[], []]);
  });
});

describe('restarting', () => {
  it('starts the named channel again, and says why not where it is off', async () => {
    const control = scriptedControl(off('carrier'), unlinked('pigeon'));
    await using rig = await startHttp({ control });
    expect((await rig.post('/api/v1/setup/channels/pigeon/restart', {})).status).toBe(202);
    const refused = await rig.post('/api/v1/setup/channels/carrier/restart', {});
    expect([refused.status, refused.body]).toEqual([409, expect.stringContaining('Turn it on')]);
    expect((await rig.post('/api/v1/setup/channels/dove/restart', {})).status).toBe(404);
    expect(control.restarts).toEqual(['pigeon', 'carrier']);
  });
});
