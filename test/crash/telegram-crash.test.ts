// The process dies at every stage of a message's life. Whatever the stage: no message is lost, none
// is answered twice, except where Telegram's answer to a first plain send was lost; that one is
// marked.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import type { Call } from '../support/bot-api-faults.ts';
import { campaign, isFullCampaign } from '../support/campaign.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { callTools, echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';
import { hasNone } from '../support/queue-states.ts';
import { laterBy } from '../support/shifted-clock.ts';

const CHATS = [501, 502, 503];
const RANDOM_KILLS = campaign({ short: 2, full: 100 });
/** More than twice the failures that a message may have. */
const KILLS_AT_START = campaign({ short: 3, full: 20 });
const TURNS_RECORDED = campaign({ short: 2, full: 3 });
const WAITING_CHATS = campaign({ short: 8, full: 20 });
const ANSWER_TIMEOUT_MS = 60_000;
const REPEAT_MARK = 'sent again';

let telegram: BotApi;
let model: LlmServer;
let home: TestHome;
let gateway: GatewayProcess;

/** Every message carries a nonce, none the beginning of another; the ledger counts the answers that carry it. */
const nonceOf = (chat: number, turn: number) => `nonce-${chat}x${String(turn).padStart(3, '0')}`;

function answersWith(chat: number, nonce: string): readonly string[] {
  return telegram
    .chat(chat)
    .messages.filter(({ from, text }) => from === 'bot' && text.includes(nonce))
    .map(({ text }) => text);
}

async function allAnswered(turns: readonly number[]) {
  for (const chat of CHATS) {
    for (const turn of turns) {
      await telegram.waitFor(
        () => answersWith(chat, nonceOf(chat, turn)).length > 0,
        ANSWER_TIMEOUT_MS,
      );
    }
  }
}

function sayInAllChats(turn: number) {
  for (const chat of CHATS) telegram.say(chat, `repeat ${nonceOf(chat, turn)}`);
}

/** Answers that stand in a chat more than once and say nothing of it. */
function unmarkedDoubles(turns: readonly number[]): readonly string[] {
  return CHATS.flatMap((chat) =>
    turns.flatMap((turn) => {
      const answers = answersWith(chat, nonceOf(chat, turn));
      return answers.filter((text) => !text.includes(REPEAT_MARK)).slice(1);
    }),
  );
}

function markedDoubles(turns: readonly number[]): readonly string[] {
  return CHATS.flatMap((chat) =>
    turns.flatMap((turn) =>
      answersWith(chat, nonceOf(chat, turn)).filter((text) => text.includes(REPEAT_MARK)),
    ),
  );
}

beforeEach(async () => {
  telegram = await startBotApi();
  model = await startLlmServer({ respond: echo });
  home = await makeTestHome(configOf());
  gateway = await home.start();
});

const configOf = (streaming = true): ConfigInput => ({
  agents: { defaults: { model: 'openai/sim-1' } },
  providers: { openai: { apiKey: 'crash-test-key', apiBase: model.openaiBase } },
  channels: {
    telegram: {
      enabled: true,
      token: telegram.token,
      apiRoot: telegram.apiRoot,
      allowFrom: ['*'],
      streaming,
    },
  },
  gateway: { port: 0 },
  coalesce: { quietMs: 50 },
  limits: { messages: { perMinute: 0, perDay: 0 } },
});

afterEach(async () => {
  await home[Symbol.asyncDispose]();
  expect(telegram.violations).toEqual([]);
  await telegram[Symbol.asyncDispose]();
  await model[Symbol.asyncDispose]();
});

/** Kills the gateway the moment `moment` resolves, starts it again and waits for every answer. */
async function killAt(moment: Promise<unknown>, heal: () => void = () => undefined) {
  await moment;
  await gateway.kill();
  heal();
  gateway = await home.start();
  await allAnswered([1]);
  // A later question shows that the chats live on and brings any late double to light.
  sayInAllChats(2);
  await allAnswered([2]);
}

function openedStore(): DatabaseSync & Disposable {
  const database = new DatabaseSync(join(home.path, 'state.db'), { readOnly: true });
  return Object.assign(database, { [Symbol.dispose]: () => database.close() });
}

/** The lines of the chat's session files. */
async function recorded(chat: number) {
  const folder = join(home.path, 'sessions');
  const names = (await readdir(folder)).filter((name) => name.startsWith(`telegram%3A${chat}_`));
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  const lines = texts.flatMap((text) => text.trimEnd().split('\n'));
  return lines.map(
    (line) => JSON.parse(line) as { readonly role?: string; readonly content?: string },
  );
}

function nextCall(method: string): Promise<unknown> {
  const seen = telegram.calls.length;
  return telegram.waitFor(() => telegram.calls.slice(seen).find((call) => call.method === method));
}

describe('kill -9 while Telegram messages are in flight', () => {
  it('answers once what was handed out and not yet stored', async () => {
    sayInAllChats(1);
    await killAt(Promise.resolve());
    expect(unmarkedDoubles([1, 2])).toEqual([]);
    expect(markedDoubles([1, 2])).toEqual([]);
  });

  it('answers once what was stored and confirmed', async () => {
    const confirmed = telegram.waitFor(() => telegram.unconfirmed.length === 0);
    sayInAllChats(1);
    await killAt(confirmed);
    expect(unmarkedDoubles([1, 2])).toEqual([]);
  });

  it('asks the model again when it died while the model was answering', async () => {
    const asked = model.received(CHATS.length);
    model.respond(() => ({ chunks: ['half of an ', new Promise(() => undefined)] }));
    sayInAllChats(1);
    await killAt(asked, () => model.respond(echo));
    expect(unmarkedDoubles([1, 2])).toEqual([]);
    expect(markedDoubles([1, 2])).toEqual([]);
  });

  it('does not run a finished tool a second time', async () => {
    const [chat = 0] = CHATS;
    const askedAgain = model.received(2);
    model.script(callTools({ name: 'remember', arguments: { fact: 'the cat is called Mia' } }), {
      chunks: [new Promise(() => undefined)],
    });
    telegram.say(chat, `please remember ${nonceOf(chat, 1)}`);
    await askedAgain;
    await gateway.kill();
    const before = model.requests.length;
    model.respond((request) => ({
      chunks: [`done ${nonceOf(chat, 1)} ${request.toolResults.length}`],
    }));
    gateway = await home.start();
    await telegram.waitFor(() => answersWith(chat, nonceOf(chat, 1)).length > 0, ANSWER_TIMEOUT_MS);
    // The result of the tool stands in the session: the model got it without a second run.
    expect(model.requests[before]?.toolResults).toHaveLength(1);
    expect(answersWith(chat, nonceOf(chat, 1))).toHaveLength(1);
  });

  it('sends an answer it had not sent', async () => {
    const fault = { kind: 'hang', stage: 'before' } as const;
    const hanging = telegram.fail({ method: 'sendMessage', fault, times: CHATS.length });
    const sending = nextCall('sendMessage');
    sayInAllChats(1);
    await killAt(sending, () => hanging[Symbol.dispose]());
    expect(unmarkedDoubles([1, 2])).toEqual([]);
  });

  it('marks the one answer of which it is not known whether it arrived', async () => {
    // On a slow machine a draft would be what was sent.
    await gateway.kill();
    await home.writeConfig(configOf(false));
    gateway = await home.start();
    const fault = { kind: 'hang', stage: 'after' } as const;
    telegram.fail({ method: 'sendMessage', fault, times: CHATS.length });
    const arrived = telegram.waitFor(() =>
      CHATS.every((chat) => answersWith(chat, nonceOf(chat, 1)).length > 0),
    );
    sayInAllChats(1);
    await killAt(arrived);
    expect(unmarkedDoubles([1, 2])).toEqual([]);
    expect(markedDoubles([1]).length).toBeLessThanOrEqual(CHATS.length);
  });

  it('sends nothing twice that Telegram has confirmed', async () => {
    sayInAllChats(1);
    await allAnswered([1]);
    await hasNone(gateway, 'running', 'outbound');
    await gateway.kill();
    gateway = await home.start();
    sayInAllChats(2);
    await allAnswered([2]);
    expect(unmarkedDoubles([1, 2])).toEqual([]);
    expect(markedDoubles([1])).toEqual([]);
  });

  it('records each turn once, also where it dies before session files are written', async () => {
    const turns = Array.from({ length: TURNS_RECORDED }, (_, n) => n + 1);
    for (const turn of turns) {
      sayInAllChats(turn);
      await allAnswered([turn]);
      // A draft may show the answer of a turn that a kill would begin again.
      await hasNone(gateway, 'running');
      await gateway.kill();
      gateway = await home.start();
    }
    await gateway.stop();
    for (const chat of CHATS) {
      const entries = await recorded(chat);
      const asked = (turn: number) =>
        entries.filter(
          ({ role, content }) => role === 'user' && content?.includes(nonceOf(chat, turn)),
        );
      expect(turns.map((turn) => asked(turn).length)).toEqual(turns.map(() => 1));
      expect(entries.filter(({ role }) => role === 'turn_end')).toHaveLength(turns.length);
    }
    using database = openedStore();
    expect(database.prepare('SELECT count(*) AS n FROM session_entry').get()).toEqual({ n: 0 });
  });

  it('loses and doubles nothing over many kills at random moments', async () => {
    const turns = Array.from({ length: RANDOM_KILLS }, (_, n) => n + 1);
    const last = RANDOM_KILLS + 1;
    for (const turn of turns) {
      sayInAllChats(turn);
      await Promise.race([
        nextCall('sendMessage').catch(() => undefined),
        new Promise((resolve) => setImmediate(resolve)),
      ]);
      await gateway.kill();
      gateway = await home.start();
    }
    await allAnswered(turns);
    sayInAllChats(last);
    await allAnswered([last]);
    expect(unmarkedDoubles([...turns, last])).toEqual([]);
  });
});

describe('kill -9 soon after each of many starts', () => {
  it('sets no message aside, and answers all of them once', async () => {
    const chats = Array.from({ length: WAITING_CHATS }, (_, n) => 600 + n);
    const texts = (chat: number) =>
      telegram.chat(chat).messages.flatMap(({ from, text }) => (from === 'bot' ? [text] : []));
    const readiness = async () => {
      const { address, credentials: headers } = gateway;
      return (await fetch(`${address}/readyz`, { headers })).status;
    };
    model.respond(() => ({ chunks: [new Promise(() => undefined)] }));
    for (const chat of chats) telegram.say(chat, `repeat ${nonceOf(chat, 1)}`);
    let asked = 0;
    for (let death = 1; death <= KILLS_AT_START; death += 1) {
      // While it still starts messages; later the program lets them wait at first.
      if (death <= 3) await model.received(asked + 1);
      await gateway.kill();
      asked = model.requests.length;
      if (death === KILLS_AT_START) model.respond(echo);
      gateway = await home.start(laterBy(0));
      await expect.poll(readiness, { timeout: 30_000 }).toBe(200);
    }
    const unanswered = () => chats.filter((chat) => texts(chat).length === 0);
    await gateway.skipUntil(() => unanswered().length === 0);
    expect(chats.map(texts)).toEqual(chats.map((chat) => [nonceOf(chat, 1)]));
  });
});

describe('kill -9 while a long answer goes out in parts', () => {
  const [CHAT = 0] = CHATS;
  /** Each fills a message of its own; together more than a draft shows. */
  const PARTS = Array.from({ length: campaign({ short: 5, full: 7 }) }, (_, n) =>
    `part-${n} ${'lorem ipsum '.repeat(300)}`.trim(),
  );
  const LAST = PARTS.length - 1;
  const HIT = isFullCampaign() ? [2, 4] : [2];
  const EDITS = campaign({ short: 2, full: 3 });

  beforeEach(() => {
    model.respond(({ lastUserText }) => ({
      chunks: [lastUserText.includes('long') ? PARTS.join('\n\n') : 'short'],
    }));
  });

  const shown = () =>
    telegram
      .chat(CHAT)
      .messages.filter(({ from, text }) => from === 'bot' && text.includes('part-'))
      .map(({ text }) => text);

  /** What the gateway has recorded: so many parts stand in the chat and no request is under way. */
  function isAtRestBehind(parts: number): boolean {
    using database = openedStore();
    const row = database
      .prepare("SELECT parts, requesting FROM outbound WHERE body LIKE '%part-0%'")
      .get();
    const recorded: unknown = JSON.parse(String(row?.['parts'] ?? '[]'));
    return Array.isArray(recorded) && recorded.length === parts && row?.['requesting'] === 0;
  }

  async function restart() {
    await gateway.kill();
    gateway = await home.start();
  }

  async function restartBehind(parts: number) {
    await expect.poll(() => isAtRestBehind(parts), { timeout: 30_000, interval: 20 }).toBe(true);
    await restart();
  }

  async function wholeAnswer() {
    const isLast = (text: string) => text.includes(`part-${LAST}`);
    await telegram.waitFor(() => shown().some(isLast), ANSWER_TIMEOUT_MS);
    telegram.say(CHAT, 'another');
    await telegram.waitFor(
      () =>
        telegram.chat(CHAT).messages.some(({ from, text }) => from === 'bot' && text === 'short'),
      ANSWER_TIMEOUT_MS,
    );
    using database = openedStore();
    const dead = database.prepare("SELECT id FROM outbound WHERE state IN ('dead', 'unknown')");
    expect(dead.all()).toEqual([]);
  }

  it('goes on with the next part however often it dies in the pause between two', async () => {
    telegram.say(CHAT, 'a long one');
    for (const parts of [...HIT, LAST]) await restartBehind(parts);
    await wholeAnswer();
    expect(shown()).toEqual(PARTS);
  });

  it.each(['before', 'after'] as const)(
    'marks the part whose request had no answer (%s it was taken) and no other',
    async (stage) => {
      const hanging = { fault: { kind: 'hang', stage } as const, method: 'sendMessage' };
      const isPart = (n: number) => ({ when: (call: Call) => textOf(call).includes(`part-${n}`) });
      for (const part of HIT) telegram.fail({ ...hanging, ...isPart(part) });
      telegram.say(CHAT, 'a long one');
      for (const part of HIT) {
        const call = await telegram.waitFor(
          () => telegram.calls.find((one) => textOf(one).includes(`part-${part}`)),
          ANSWER_TIMEOUT_MS,
        );
        if (stage === 'after') {
          await telegram.waitFor(() => shown().some((text) => text.startsWith(`part-${part}`)));
        }
        expect(call.method).toBe('sendMessage');
        await restart();
      }
      await restartBehind(LAST);
      await wholeAnswer();
      const marked = shown().filter((text) => text.includes(REPEAT_MARK));
      expect(marked.map((text) => /part-\d/.exec(text)?.[0])).toEqual(HIT.map((n) => `part-${n}`));
      const first = shown().filter((text) => !text.includes(REPEAT_MARK));
      expect(first).toEqual(stage === 'after' ? PARTS : PARTS.filter((_, n) => !HIT.includes(n)));
    },
  );

  it('edits the draft into the first part as often as it must', async () => {
    const half = Promise.withResolvers<void>();
    const rest = ` end of part 0\n\n${PARTS.slice(1).join('\n\n')}`;
    model.respond(({ lastUserText }) => ({
      chunks: lastUserText.includes('long') ? [PARTS[0] ?? '', half.promise, rest] : ['short'],
    }));
    telegram.say(CHAT, 'a long one');
    await telegram.waitFor(() => shown().length > 0, ANSWER_TIMEOUT_MS);
    const fault = { kind: 'hang', stage: 'before' } as const;
    telegram.fail({ method: 'editMessageText', fault, times: EDITS, when: isFinalEdit });
    half.resolve();
    for (let edits = 1; edits <= EDITS; edits += 1) {
      await telegram.waitFor(
        () => telegram.calls.filter(isFinalEdit).length >= edits,
        ANSWER_TIMEOUT_MS,
      );
      await restart();
    }
    await wholeAnswer();
    expect(shown()).toEqual([`${PARTS[0]} end of part 0`, ...PARTS.slice(1)]);
  });
});

const textOf = ({ payload }: Call): string => String(payload['text'] ?? '');
const isFinalEdit = (call: Call): boolean =>
  call.method === 'editMessageText' && textOf(call).trim().endsWith('end of part 0');
