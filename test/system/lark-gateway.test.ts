// The whole program between Lark and a model, as the people in the chats see it.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { makeTestHome, type TestHome } from '../support/gateway-process.ts';
import type { LarkChat, LarkPerson, LarkServer } from '../support/lark-server/contract.ts';
import { startLarkServer } from '../support/lark-server/server.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';

const ANSWER_TIMEOUT_MS = 45_000;

let stack: AsyncDisposableStack;
let lark: LarkServer;
let model: LlmServer;
let home: TestHome;
let anna: LarkPerson;
let ben: LarkPerson;
let team: LarkChat;

beforeAll(async () => {
  stack = new AsyncDisposableStack();
  lark = stack.use(await startLarkServer());
  model = stack.use(await startLlmServer({ respond: echo }));
  anna = lark.person('Anna');
  ben = lark.person('Ben');
  team = lark.group('Team');
  home = stack.use(await makeTestHome(configOf()));
});

afterAll(async () => {
  await stack.disposeAsync();
  expect(lark.violations).toEqual([]);
});

const configOf = (): ConfigInput => ({
  agents: { defaults: { model: 'openai/sim-1' } },
  providers: { openai: { apiKey: 'lark-test-key', apiBase: model.openaiBase } },
  channels: {
    lark: {
      enabled: true,
      appId: lark.appId,
      appSecret: lark.appSecret,
      domain: lark.url,
      allowFrom: [anna.unionId, ben.unionId],
      groups: [team.id],
      ackReaction: 'Typing',
    },
  },
  gateway: { port: 0 },
  coalesce: { quietMs: 50 },
  limits: { messages: { perMinute: 0, perDay: 0 } },
});

const countOf = (chat: LarkChat, nonce: string) =>
  lark.seen(chat).filter((message) => lark.textOf(message).includes(nonce)).length;

const answered = (chat: LarkChat, nonce: string) =>
  lark.until(() => countOf(chat, nonce) > 0, ANSWER_TIMEOUT_MS);

describe('a conversation by Lark', () => {
  it('answers whom the union_id lets in, shows that it works, and nobody else', async () => {
    await using _gateway = await home.start();
    const direct = lark.direct(anna);
    const id = lark.say(anna, 'please say nonce-hello');
    await answered(direct, 'nonce-hello');
    await lark.until(() => lark.message(id).reactions.length === 0);
    expect(
      lark.calls.some(({ method, path }) => method === 'POST' && path.endsWith('/reactions')),
    ).toBe(true);
    const eve = lark.person('Eve');
    lark.say(eve, 'please say nonce-eve');
    await lark.until(() => lark.acknowledged.length >= 2);
    lark.say(anna, 'please say nonce-after');
    await answered(direct, 'nonce-after');
    expect(lark.seen(lark.direct(eve))).toEqual([]);
    expect(JSON.stringify(model.requests.map(({ body }) => body))).not.toContain('nonce-eve');
  });

  it('is tested by a message to its owner that is taken away, and reaches no model', async () => {
    await using _gateway = await home.start();
    const olga = lark.person('Olga');
    const approve = ['pair', 'approve', 'lark', olga.unionId, '--role', 'owner'];
    expect((await runNanobot(approve, { home: home.path })).code).toBe(0);
    lark.say(olga, 'please say nonce-owner');
    await answered(lark.direct(olga), 'nonce-owner');
    const asked = model.requests.length;
    const { code, stdout } = await runNanobot(['selftest', '--live'], { home: home.path });
    expect(stdout).toMatch(/^lark +passed +receiving \d+ ms, sent \d+ ms, removed \d+ ms$/m);
    expect(code).toBe(0);
    expect(countOf(lark.direct(olga), 'Self-test')).toBe(0);
    expect(model.requests.length).toBe(asked);
  });

  it('answers in a listed group below the question where it is mentioned', async () => {
    await using _gateway = await home.start();
    lark.say(anna, 'nonce-talk among us', { chat: team.id });
    const text = '@_user_1 please say nonce-team';
    const id = lark.say(anna, text, { chat: team.id, mentionsBot: true });
    await answered(team, 'nonce-team');
    expect(lark.seen(team)[0]?.parent).toBe(id);
    const other = lark.group('Elsewhere');
    lark.say(anna, text, { chat: other.id, mentionsBot: true });
    lark.say(anna, '@_user_1 please say nonce-last', { chat: team.id, mentionsBot: true });
    await answered(team, 'nonce-last');
    expect(lark.seen(other)).toEqual([]);
  });

  it('answers two people of a group who ask at once, each below their question', async () => {
    await using _gateway = await home.start();
    const ask = (who: LarkPerson, nonce: string) =>
      lark.say(who, `@_user_1 please say ${nonce}`, { chat: team.id, mentionsBot: true });
    const asked = [
      [ask(anna, 'nonce-first'), 'nonce-first'],
      [ask(ben, 'nonce-second'), 'nonce-second'],
    ] as const;
    for (const [question, nonce] of asked) {
      await answered(team, nonce);
      const answers = lark.seen(team).filter((message) => lark.textOf(message).includes(nonce));
      expect(answers.map(({ parent }) => parent)).toEqual([question]);
    }
  });

  it('answers every question once although it is killed in the middle', async () => {
    const direct = lark.direct(anna);
    const pad = (index: number) => `nonce-kill${String(index).padStart(2, '0')}`;
    const gateway = await home.start();
    for (let index = 0; index < 6; index += 1) lark.say(anna, `please say ${pad(index)}`);
    await lark.until(() => countOf(direct, 'nonce-kill') > 0, ANSWER_TIMEOUT_MS);
    for (let index = 6; index < 12; index += 1) lark.say(anna, `please say ${pad(index)}`);
    await lark.until(() => lark.acknowledged.length > 8);
    await gateway.kill();
    lark.say(anna, `please say ${pad(12)}`);
    const again = await home.start();
    for (let index = 0; index <= 12; index += 1) await answered(direct, pad(index));
    for (let index = 0; index <= 12; index += 1) expect(countOf(direct, pad(index))).toBe(1);
    expect(await again.stop()).toBe(0);
    await expect.poll(() => lark.connections).toBe(0);
  });

  it('writes no secret, token or ticket into any log', async () => {
    const logs = await home.logs();
    expect(logs.length).toBeGreaterThan(0);
    for (const secret of lark.secrets) expect(logs).not.toContain(secret);
    expect(logs).not.toContain('please say');
  });
});
