// `nanobot selftest --live` beside the whole program and a simulated Telegram: what is said, what the
// chat sees, and with what the command leaves.

import { afterAll, describe, expect, it } from 'vitest';
import { runNanobot } from '../cli/run-nanobot.ts';
import { echo } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 700;

const world = await startTelegramWorld({ respond: echo });
const { telegram, model, home } = world;
afterAll(() => world[Symbol.asyncDispose]());

const selfTest = (...flags: readonly string[]) =>
  runNanobot(['selftest', '--live', ...flags], { home: home.path });

describe('the live self-test', () => {
  it('needs an owner’s chat, then sends a message there and takes it away, and no model hears of it', async () => {
    const alone = await selfTest();
    expect(alone.code).toBe(1);
    expect(alone.stdout).toMatch(/^web +passed +answered \d+ ms$/m);
    expect(alone.stdout).toMatch(/^telegram +FAILED/m);
    expect(alone.stdout).toContain('Send the agent one message there');

    await world.nanobot('pair', 'approve', 'telegram', String(OWNER), '--role', 'owner');
    telegram.say(OWNER, 'please say nonce-hello');
    expect((await telegram.nextMessage(OWNER)).text).toBe('nonce-hello');
    const asked = model.requests.length;

    const { code, stdout } = await selfTest('--json');
    const verdicts = JSON.parse(stdout);
    expect([code, verdicts]).toMatchObject([
      0,
      [
        { channel: 'web', passed: true },
        {
          channel: 'telegram',
          passed: true,
          hops: [{ hop: 'receiving' }, { hop: 'sent' }, { hop: 'removed' }],
        },
      ],
    ]);
    const sent = telegram.calls.findLast(({ method }) => method === 'sendMessage');
    expect(sent?.payload).toMatchObject({ chat_id: OWNER });
    expect(String(sent?.payload['text'])).toMatch(/^Self-test [0-9a-f]{16}/);
    expect(telegram.chat(OWNER).messages.filter(({ text }) => text?.includes('Self-test'))).toEqual(
      [],
    );

    const fault = { kind: 'error', code: 403, description: 'Forbidden: bot was blocked' } as const;
    using _blocked = telegram.fail({ fault, method: 'sendMessage' });
    const refused = await selfTest();
    expect(refused.code).toBe(1);
    expect(refused.stdout).toMatch(/^telegram +FAILED +receiving/m);
    expect(refused.stdout).toContain('nanobot channels restart telegram');
    expect(refused.stderr).toContain('failed: telegram');
    expect(model.requests.length).toBe(asked);
    expect(await world.gateway.stop()).toBe(0);
  });

  it('says how to start a gateway where none runs, and does nothing without --live', async () => {
    const { code, stderr } = await selfTest();
    expect([code, stderr]).toEqual([6, expect.stringContaining('nanobot gateway')]);
    expect((await runNanobot(['selftest'], { home: home.path })).code).toBe(2);
  });
});
