// The process dies when Lark has made the preview of an answer and nothing here has noted it: the answer
// still stands in the chat once, and no half of it beside it.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import type { LarkChat, LarkPerson, LarkServer } from '../support/lark-server/contract.ts';
import { startLarkServer } from '../support/lark-server/server.ts';
import { type LlmServer, startLlmServer } from '../support/llm-server.ts';

const BEGINNING = 'The answer begins here, ';
const WHOLE = 'The answer begins here, and this is its end.';

let stack: AsyncDisposableStack;
let lark: LarkServer;
let model: LlmServer;
let home: TestHome;
let gateway: GatewayProcess;
let anna: LarkPerson;
let direct: LarkChat;
let team: LarkChat;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  lark = stack.use(await startLarkServer());
  model = stack.use(await startLlmServer({ respond: () => ({ chunks: [WHOLE] }) }));
  anna = lark.person('Anna');
  direct = lark.direct(anna);
  team = lark.group('Team');
  home = stack.use(
    await makeTestHome({
      agents: { defaults: { model: 'openai/sim-1' } },
      providers: { openai: { apiKey: 'lark-crash-key', apiBase: model.openaiBase } },
      channels: {
        lark: {
          ...{ enabled: true, appId: lark.appId, appSecret: lark.appSecret, domain: lark.url },
          ...{ allowFrom: [anna.unionId], groups: [team.id] },
        },
      },
      gateway: { port: 0 },
      coalesce: { quietMs: 50 },
      limits: { messages: { perMinute: 0, perDay: 0 } },
    }),
  );
  gateway = await home.start();
});

afterEach(async () => {
  await stack.disposeAsync();
  expect(lark.violations).toEqual([]);
});

const shown = (chat: LarkChat) => lark.seen(chat).map((message) => lark.textOf(message));

/** Lark makes the next message and its answer never comes; resolves when it stands in the chat. */
function nextIsNotConfirmed(chat: LarkChat): Promise<unknown> {
  lark.fault({
    method: 'POST',
    path: /^im\/v1\/messages(?:\/\w+\/reply)?$/,
    effect: { kind: 'hang' },
  });
  return lark.until(() => lark.seen(chat).length > 0);
}

/** A later question shows what stands in the chat for good. */
async function answeredAgain(chat: LarkChat, saying = {}) {
  await lark.until(() => shown(chat).includes(WHOLE));
  model.respond(() => ({ chunks: ['Something else.'] }));
  lark.say(anna, 'and then?', saying);
  await lark.until(() => shown(chat).includes('Something else.'));
  expect(shown(chat)).toEqual([WHOLE, 'Something else.']);
}

describe('kill -9 between the placing of a preview and its record', () => {
  it('leaves one answer where the model is asked again', async () => {
    model.respond(() => ({ chunks: [BEGINNING, new Promise(() => undefined)] }));
    const isPlaced = nextIsNotConfirmed(direct);
    lark.say(anna, 'a question');
    await isPlaced;
    await gateway.kill();
    model.respond(() => ({ chunks: [WHOLE] }));
    gateway = await home.start();
    await answeredAgain(direct);
  });

  it('leaves one answer below its question in a group', async () => {
    model.respond(() => ({ chunks: [BEGINNING, new Promise(() => undefined)] }));
    const isPlaced = nextIsNotConfirmed(team);
    const saying = { chat: team.id, mentionsBot: true };
    const question = lark.say(anna, '@_user_1 a question', saying);
    await isPlaced;
    await gateway.kill();
    model.respond(() => ({ chunks: [WHOLE] }));
    gateway = await home.start();
    await answeredAgain(team, saying);
    expect(lark.seen(team)[0]?.parent).toBe(question);
  });

  it('leaves one answer where Lark refuses for a while to say which preview it was', async () => {
    model.respond(() => ({ chunks: [BEGINNING, new Promise(() => undefined)] }));
    const isPlaced = nextIsNotConfirmed(direct);
    lark.say(anna, 'a question');
    await isPlaced;
    await gateway.kill();
    const path = /^im\/v1\/messages$/;
    for (const [status, code] of [
      [400, 1500],
      [429, 99991400],
    ] as const) {
      lark.fault({ method: 'POST', path, effect: { kind: 'error', status, code } });
    }
    model.respond(() => ({ chunks: [WHOLE] }));
    gateway = await home.start();
    await answeredAgain(direct);
  });

  it('leaves one answer where it was finished and waited for the preview', async () => {
    const isPlaced = nextIsNotConfirmed(direct);
    model.respond(() => ({ chunks: [BEGINNING, isPlaced, 'and this is its end.'] }));
    lark.say(anna, 'a question');
    await isPlaced;
    await expect.poll(() => home.logs(), { timeout: 30_000 }).toContain('turn ended');
    await gateway.kill();
    gateway = await home.start();
    await answeredAgain(direct);
  });
});
