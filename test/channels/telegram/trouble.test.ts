import { describe, expect, test } from 'vitest';
import type { ChannelStatus } from '../../../src/channels/channel.ts';
import { createBotLink } from '../../../src/channels/telegram/client.ts';
import { ChannelError } from '../../../src/kernel/message/errors.ts';
import { sending } from '../../contract/channel.ts';
import { PNG } from '../../contract/media.ts';
import { type FaultProxy, type ProxyMode, startFaultProxy } from '../../support/fault-proxy.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { REDIRECTS, startElsewhere, startRedirector } from '../../support/redirector.ts';
import { ALICE, answer, type Rig, seenBy, startRig } from './rig.ts';

const CONFLICT = {
  kind: 'error',
  code: 409,
  description: 'Conflict: terminated by other getUpdates request',
} as const;

const polls = (rig: Rig) => rig.api.calls.filter(({ method }) => method === 'getUpdates').length;

const lastStatus = (rig: Rig) => rig.host.statuses.at(-1);

describe('another program with the same token', () => {
  test('is waited out for ever, named in words, and told to the owner once', async () => {
    const clock = createMovableClock();
    await using rig = await startRig({ clock });
    const conflict = rig.api.fail({ method: 'getUpdates', fault: CONFLICT, times: 1e9 });
    rig.start();
    for (let minute = 0; minute < 10; minute += 1) {
      const before = conflict.hits;
      await rig.host.until(() => lastStatus(rig)?.kind === 'degraded');
      await clock.advance(60_000);
      await rig.api.waitFor(() => conflict.hits > before);
    }
    expect(lastStatus(rig)).toMatchObject({
      kind: 'degraded',
      reason: expect.stringContaining('another program'),
    });
    await rig.host.until(({ alerts }) => alerts.length === 1);
    expect(rig.api.calls.filter(({ method }) => method === 'deleteWebhook')).toHaveLength(1);
    conflict[Symbol.dispose]();
    rig.api.say(ALICE, 'are you back?');
    await clock.advance(70_000);
    await rig.host.until((host) => host.texts().includes('are you back?'));
    expect(lastStatus(rig)?.kind).toBe('running');
  });

  test('that polls all the time is noticed although some of our polls get through', async () => {
    const clock = createMovableClock();
    await using rig = await startRig({ clock });
    const leave = new AbortController();
    const other = (async () => {
      while (!leave.signal.aborted) {
        const url = `${rig.api.apiRoot}/bot${rig.api.token}/getUpdates`;
        const body = JSON.stringify({ timeout: 20 });
        await fetch(url, { method: 'POST', body, signal: leave.signal }).catch(() => undefined);
      }
    })();
    rig.start();
    await advanceUntil(clock.advance, rig, () => rig.host.alerts.length > 0);
    leave.abort();
    await other;
    expect(rig.host.alerts).toEqual([expect.stringContaining('another program')]);
  });

  test('a forgotten webhook is removed and messages come', async () => {
    const clock = createMovableClock();
    await using rig = await startRig({ clock });
    rig.api.setWebhook('https://old.example');
    rig.api.say(ALICE, 'hello?');
    rig.start();
    await rig.host.until(() => lastStatus(rig)?.kind === 'degraded');
    await rig.api.waitFor(() => rig.api.calls.some(({ method }) => method === 'deleteWebhook'));
    await advanceUntil(clock.advance, rig, () => rig.host.texts().includes('hello?'));
  });
});

/** Moves time on in steps, letting the network work in between, until the look is true. */
async function advanceUntil(advance: (ms: number) => Promise<void>, rig: Rig, look: () => boolean) {
  for (let step = 0; step < 400 && !look(); step += 1) {
    await advance(1000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await rig.host.until(look);
}

describe('refusals', () => {
  test('a refused token stops the channel and says what to do', async () => {
    await using rig = await startRig();
    rig.api.revoke();
    rig.start();
    expect(await rig.failure).toBeInstanceOf(ChannelError);
    expect(await rig.failure).toMatchObject({ remedy: { kind: 'never' } });
    expect(lastStatus(rig)).toMatchObject({
      kind: 'stopped',
      remedy: expect.stringContaining('@BotFather'),
    });
    expect(rig.host.alerts).toHaveLength(1);
    expect(polls(rig)).toBe(1);
  });

  test('a wait that Telegram asks for is kept to the second', async () => {
    const clock = createMovableClock();
    await using rig = await startRig({ clock });
    const fault = {
      kind: 'error',
      code: 429,
      description: 'Too Many Requests: retry after 37',
      parameters: { retry_after: 37 },
    } as const;
    rig.api.fail({ method: 'getUpdates', fault });
    rig.start();
    const status = await rig.host.until(({ statuses }) =>
      statuses.find(({ kind }) => kind === 'degraded'),
    );
    expect(status).toMatchObject({ retryAt: clock.now() + 37_000 });
    await clock.advance(36_999);
    expect(polls(rig)).toBe(1);
    await clock.advance(1);
    await rig.api.waitFor(() => polls(rig) > 1);
  });

  test('an answer that is no list of updates is a failed poll', async () => {
    const clock = createMovableClock();
    await using rig = await startRig({ clock });
    rig.api.fail({ method: 'getUpdates', fault: { kind: 'html', stage: 'before', status: 502 } });
    rig.api.fail({ method: 'getUpdates', fault: { kind: 'not_json', stage: 'before' } });
    rig.api.fail({ method: 'getUpdates', fault: { kind: 'drop', stage: 'after' } });
    rig.api.say(ALICE, 'through it all');
    rig.start();
    await advanceUntil(clock.advance, rig, () => rig.host.texts().includes('through it all'));
  });
});

describe('a poll that stalls', () => {
  const modes: readonly ProxyMode[] = [
    { kind: 'blackhole' },
    { kind: 'half_open' },
    { kind: 'trickle', everyMs: 20_000 },
    { kind: 'reset' },
    { kind: 'refuse' },
    { kind: 'cut', afterBytes: 20 },
  ];
  test.each(modes)('by $kind is left behind within 40 s and polling goes on', async (mode) => {
    const clock = createMovableClock();
    await using direct = await startRig({ clock });
    await using proxy: FaultProxy = await startFaultProxy({ port: direct.api.port });
    direct.start({ apiRoot: `http://127.0.0.1:${proxy.port}` });
    await direct.api.waitFor(() => polls(direct) === 2);
    await proxy.set(mode);
    direct.api.say(ALICE, 'can you hear me?');
    const silentSince = clock.now();
    await advanceUntil(clock.advance, direct, () => lastStatus(direct)?.kind === 'degraded');
    expect(clock.now() - silentSince).toBeLessThanOrEqual(41_000);
    expect(direct.host.texts()).toEqual([]);
    await proxy.set({ kind: 'pass' });
    await advanceUntil(clock.advance, direct, () => direct.host.texts().length > 0);
    expect(direct.host.texts()).toEqual(['can you hear me?']);
  });

  test('is noticed while sends succeed', async () => {
    const clock = createMovableClock();
    await using rig = await startRig({ clock });
    rig.start();
    await rig.host.until(() => lastStatus(rig)?.kind === 'running');
    rig.api.fail({ method: 'getUpdates', fault: { kind: 'hang', stage: 'before' }, times: 1 });
    rig.api.say(ALICE, 'first');
    await rig.api.waitFor(() => rig.api.chat(ALICE).messages.length === 1);
    await rig.channel.send(answer('a reminder'), sending());
    await advanceUntil(clock.advance, rig, () => rig.host.texts().includes('first'));
    expect(seenBy(rig.api, ALICE)).toEqual(['a reminder']);
  });
});

const accountOf = (status: ChannelStatus | undefined) =>
  status?.kind === 'running' ? status.account : undefined;

describe('a start', () => {
  test('is ready after one quick poll, with menu and name fetched behind it', async () => {
    await using rig = await startRig();
    rig.start();
    await rig.host.until(() => lastStatus(rig)?.kind === 'running');
    expect(rig.api.calls[0]).toMatchObject({ method: 'getUpdates', payload: { timeout: 0 } });
    await rig.api.waitFor(() => rig.api.commands.length > 0);
    // The long poll that is under way goes on.
    await rig.host.until(({ statuses }) => accountOf(statuses.at(-1)) !== undefined);
    expect(lastStatus(rig)).toMatchObject({ account: '@nano_sim_bot' });
  });

  test('within a day asks neither for the name nor sets the menu again', async () => {
    await using rig = await startRig();
    rig.start();
    const menus = () => rig.api.calls.filter(({ method }) => method === 'setMyCommands');
    await rig.api.waitFor(() => menus().length === 2);
    rig.api.say(ALICE, 'one');
    await rig.host.until((host) => host.texts().length === 1);
    await rig.stop();
    rig.start();
    rig.api.say(ALICE, 'two');
    await rig.host.until((host) => host.texts().length === 2);
    const methods = rig.api.calls.map(({ method }) => method);
    expect(methods.filter((method) => method === 'getMe')).toHaveLength(1);
    expect(menus()).toHaveLength(2);
    const [direct, group] = menus().map(({ payload }) => JSON.stringify(payload));
    expect(direct).toContain('"restore"');
    expect(group).not.toMatch(/"(?:restore|model|cron|sessions)"/);
  });
});

describe('a server that redirects', () => {
  test('gets messages, files and the token sent to no other host', async () => {
    await using elsewhere = await startElsewhere();
    await using redirector = await startRedirector(`http://${elsewhere.host}`);
    const clock = createMovableClock();
    const link = createBotLink({ token: '1:secret', apiRoot: redirector.url, clock });
    const { signal } = new AbortController();
    const file = { field: 'document', name: 'a.txt', mimeType: 'text/plain', content: PNG };
    const calls = [
      () => link.send({ chat_id: 700, text: 'private' }, { signal }),
      () => link.upload('sendDocument', { chat_id: 700 }, [file], signal),
      () => link.file('documents/1', signal),
    ];
    for (const status of REDIRECTS) {
      redirector.status = status;
      for (const call of calls) await expect(call()).rejects.toThrow();
    }
    expect(redirector.requests).toBe(REDIRECTS.length * calls.length);
    expect(elsewhere.connections).toBe(0);
  });
});
