// Updates as no honest Telegram sends them, with good messages between: the poll goes on,
// nothing in them is taken for somebody who may speak, and every good message is answered. Case B5.
// The whole program, seen from Telegram.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { campaign } from '../support/campaign.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';

const OWNER = 700;
const FIRST = 1000;
const LONG_MS = 150_000;
const UPDATES = campaign({ short: 400, full: 1000 });
const GOOD = UPDATES / 20;
const EVE = 666;
const GROUP = -1_001_000_000_066;

type Json = unknown;
type Update = Readonly<Record<string, Json>>;

let telegram: BotApi;
let model: LlmServer;
let home: TestHome;
let gateway: GatewayProcess;

beforeAll(async () => {
  telegram = await startBotApi();
  model = await startLlmServer({ respond: echo });
  const { token, apiRoot } = telegram;
  const people = Array.from({ length: GOOD }, (_, n) => String(FIRST + n));
  home = await makeTestHome({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'updates-key', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        ...{ enabled: true, token, apiRoot, strangers: 'closed', streaming: false },
        ...{ allowFrom: [String(OWNER), ...people], groups: [String(GROUP)] },
      },
    },
    gateway: { port: 0 },
    coalesce: { quietMs: 50 },
  });
  gateway = await home.start();
});

afterAll(async () => {
  await home[Symbol.asyncDispose]();
  await telegram[Symbol.asyncDispose]();
  await model[Symbol.asyncDispose]();
});

/** Of somebody who may not speak; the text says so. */
const eve = { id: EVE, is_bot: false, first_name: 'Eve' };
const message = (n: number): Update => ({
  message_id: 500_000 + n,
  from: eve,
  chat: { id: EVE, type: 'private' },
  date: 1_800_000_000,
  text: `nonce-evil${n}`,
  entities: [{ type: 'bold', offset: 0, length: 4 }],
  reply_to_message: { message_id: 1, date: 1, chat: { id: EVE, type: 'private' }, text: 'q' },
});
const query = (n: number): Update => ({
  id: `q${n}`,
  from: eve,
  message: message(n),
  chat_instance: '1',
  data: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
});
const reaction = (n: number): Update => ({
  chat: { id: EVE, type: 'private' },
  message_id: n,
  user: eve,
  date: 1,
  old_reaction: [],
  new_reaction: [{ type: 'emoji', emoji: '👍' }],
});
const file = { file_id: 'f', file_unique_id: 'u', file_size: 1, file_name: 'x.txt' };
const withFile = (n: number): Update => ({
  ...message(n),
  text: undefined,
  caption: `nonce-evil${n}`,
  document: file,
  photo: [{ ...file, width: 1, height: 1 }],
  media_group_id: `album${n % 3}`,
});
/** One of each kind that is read. */
const kinds: readonly ((n: number) => Update)[] = [
  (n) => ({ message: message(n) }),
  (n) => ({ edited_message: { ...message(n), edit_date: 2 } }),
  (n) => ({ callback_query: query(n) }),
  (n) => ({ message_reaction: reaction(n) }),
  (n) => ({ message: withFile(n) }),
  (n) => ({ message: { ...message(n), chat: { id: GROUP, type: 'supergroup', title: 'G' } } }),
  () => ({ my_chat_member: { chat: { id: GROUP, type: 'supergroup' }, from: eve, date: 1 } }),
];
const kind = (n: number) => kinds[n % kinds.length]?.(n) ?? {};

/** Every place of a value, as a path of keys. */
function placesOf(value: Json, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Object.entries(value).flatMap(([key, one]) => placesOf(one, [...path, key]));
  return path.length === 0 ? inner : [path, ...inner];
}

/** The value with another one in that place; undefined takes it away. */
function put(value: Json, [key, ...rest]: readonly string[], content: Json): Json {
  if (key === undefined) return content;
  const known = (value ?? {}) as Readonly<Record<string, Json>>;
  const changed = { ...known, [key]: put(known[key], rest, content) };
  return Array.isArray(value) ? Object.values(changed) : changed;
}

const changed = (n: number, content: Json): Update => {
  const update = kind(n);
  const places = placesOf(update);
  return put(update, places[(n * 31) % places.length] ?? [], content) as Update;
};

const WRONG: readonly Json[] = [
  undefined,
  null,
  '',
  [],
  {},
  -1,
  Number.MAX_SAFE_INTEGER + 2,
  [[[]]],
  { toString: 'x', valueOf: 1, constructor: {} },
  '__proto__',
];
/** Those who may speak, spelled as no id is. */
const NEARLY: readonly Json[] = [
  ...[String(OWNER), `${OWNER}.0`, [OWNER], { id: OWNER }, `0x${OWNER.toString(16)}`, true],
  ...[`${OWNER} `, 700.5, -OWNER, `+${OWNER}`],
];
function nested(depth: number, inner: Json): Json {
  let value = inner;
  for (let at = 0; at < depth; at += 1) {
    value = at % 2 === 0 ? { reply_to_message: value, message: value === inner ? 1 : 2 } : [value];
  }
  return value;
}
const RARE = [
  '\0',
  '\ud800',
  '\u202e',
  '\u2028',
  '\ufeff',
  '👩‍👩‍👧‍👦',
  '\u0301'.repeat(300),
  '\ufdfa',
  '💥',
  '\u{e0041}',
];
const UNKNOWN = ['channel_post', 'inline_query', 'poll', 'business_message', 'chat_boost'];

const swapped = (n: number): Update => {
  const id = NEARLY[n % NEARLY.length];
  const text = `nonce-evil${n}`;
  const from = { ...eve, id };
  const shapes: readonly Update[] = [
    { message: { ...message(n), from, text } },
    { message: { ...message(n), from, chat: { id, type: 'private' } } },
    { callback_query: { ...query(n), from } },
    { message_reaction: { ...reaction(n), user: from } },
    { edited_message: { ...message(n), from } },
  ];
  return shapes[n % shapes.length] ?? {};
};

const HOSTILE: readonly (readonly [string, number, (n: number) => Update])[] = [
  ['mutations of the schema', 400, (n) => changed(n, WRONG[n % WRONG.length])],
  ['swapped types', 200, swapped],
  ['deep nesting', 100, (n) => changed(n, nested(50 + n * 5, message(n)))],
  ['huge strings', 100, (n) => changed(n, 'x'.repeat(1000 * (1 + n)))],
  ['rare letters', 100, (n) => changed(n, `${RARE[n % RARE.length]}nonce-evil${n}`)],
  [
    'unknown kinds',
    100,
    (n) => ({ [`${UNKNOWN[n % UNKNOWN.length]}${n > 50 ? n : ''}`]: message(n) }),
  ],
];

const answered = (id: number) => telegram.chat(id).messages.some(({ from }) => from === 'bot');

describe('hundreds of malformed updates', () => {
  it(
    'stop nothing, and let nobody speak who may not',
    async () => {
      const all = HOSTILE.flatMap(([, count, make]) =>
        Array.from({ length: (count * UPDATES) / 1000 }, (_, n) => make(n)),
      );
      expect(all).toHaveLength(UPDATES);
      for (const [index, update] of all.entries()) {
        telegram.offer(update);
        if (index % (all.length / GOOD) === 0) {
          const n = index / (all.length / GOOD);
          telegram.say(FIRST + n, `please say nonce-good${n}`);
        }
      }
      await telegram.waitFor(() => telegram.unconfirmed.length === 0, LONG_MS);
      for (let n = 0; n < GOOD; n += 1) await telegram.waitFor(() => answered(FIRST + n));
      const asked = model.requests.map(({ lastUserText }) => lastUserText);
      expect(asked.filter((text) => text.includes('evil'))).toEqual([]);
      expect(asked).toHaveLength(GOOD);
      const spoken = telegram.chats().filter(({ id }) => answered(id));
      expect(spoken.map(({ id }) => id).toSorted()).toEqual(
        Array.from({ length: GOOD }, (_, n) => FIRST + n),
      );
      for (let n = 0; n < GOOD; n += 1) {
        const said = telegram.chat(FIRST + n).messages.filter(({ from }) => from === 'bot');
        expect(said.map(({ text }) => text)).toEqual([`nonce-good${n}`]);
      }
      expect(telegram.violations).toEqual([]);
      expect(await gateway.stop()).toBe(0);
    },
    2 * LONG_MS,
  );
});
