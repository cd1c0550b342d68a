// The search by meaning between a strict Telegram, a scripted model and a deterministic embedding server
// whose words of one meaning are one word: what it finds for whom, what it may not see, and what happens
// where the server, the process or the model goes.

import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, expect, it } from 'vitest';
import { EMBEDDING_KEY, startEmbeddingServer } from '../support/embedding-server.ts';
import { callTools, type LlmReply, type LlmRequest, say } from '../support/llm-server.ts';
import { startHttpProxy } from '../support/proxy-programs.ts';
import { laterBy } from '../support/shifted-clock.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OLGA = { id: 720, first_name: 'Olga' };
const ANNA = { id: 721, first_name: 'Anna' };

/** `call <tool> <json>` has the tool called, and its result is the answer. */
function obedient({ lastUserText, toolResults }: LlmRequest): LlmReply {
  const result = toolResults.at(-1);
  if (result !== undefined) return say(`result: ${result.text}`);
  const [, name, json = '{}'] = /call (\w+) (\{.*\})/.exec(lastUserText) ?? [];
  return name === undefined
    ? say(`heard: ${lastUserText}`)
    : callTools({ name, arguments: JSON.parse(json) });
}

const filler = (about: string, count: number) =>
  Array.from({ length: count }, (_, at) => `Entry ${at} of ${about} says nothing of note.`);
const embeddings = await startEmbeddingServer();
const proxy = await startHttpProxy();
/** A name that only the proxy knows: a service elsewhere. */
const cloud = embeddings.base.replace('127.0.0.1', 'embeddings.test');
const sections = (more: object = {}) => ({
  search: {
    embeddings: {
      model: 'sim-embed',
      apiBase: cloud,
      apiKey: EMBEDDING_KEY,
      // No request is given up because the clock is moved while it is under way.
      timeoutSecs: 600,
      ...more,
    },
  },
  network: { proxy: proxy.url },
  models: { prices: [{ model: 'sim-embed', input: 1000, output: 0, cached: 0 }] },
  tools: { approvals: { owner: 'strict' as const } },
});
const world = await startTelegramWorld({
  respond: obedient,
  config: sections(),
  files: {
    'docs/lease.md': `# Flat\n\n${filler('the street', 12).join('\n')}\n\nThe landlord gets 900 francs on the first.\n`,
    'docs/archive.txt': filler('the archive', 900).join('\n\n'),
    'people/p-other/diary.md': 'Somebody else was given birth to in a snow storm.\n',
  },
  channel: { allowFrom: [`${ANNA.id}`] },
  pair: { [OLGA.id]: 'owner' },
  env: laterBy(0),
});
const { telegram, home, asks, file, hears } = world;
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await embeddings[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
});

const query = <Row>(sql: string) => {
  const database = new DatabaseSync(join(home.path, 'index.db'), { readOnly: true });
  try {
    return database.prepare(sql).all() as readonly unknown[] as readonly Row[];
  } finally {
    database.close();
  }
};
const count = (sql: string) =>
  Number(query<{ n: number }>(`SELECT count(*) AS n FROM ${sql}`)[0]?.n);
const tables = () =>
  query<{ name: string }>("SELECT name FROM sqlite_master WHERE name LIKE 'vector%'");
const waiting = () => (tables().length === 0 ? -1 : count('vector_pending'));
const searches = (question: string, more: object = {}) =>
  `call semantic_search ${JSON.stringify({ query: question, ...more })}`;
const vectorsOf = (like: string) =>
  count(`vector JOIN part ON part.id = vector.part WHERE part.text LIKE '%${like}%'`);
/** Until all that waits has its vectors, and something had. */
const embedded = () =>
  world.gateway
    .skipUntil(() => waiting() === 0 && count('vector') > 0)
    .catch((error) => {
      throw new Error(`${waiting()} wait`, { cause: error });
    });

it('goes on after a kill in the middle of the first indexing', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await world.gateway.skipUntil(() => embeddings.inputs.length > 0);
  embeddings.gate = promise;
  await expect.poll(() => tables().length > 0 && count('vector')).toBeGreaterThan(0);
  expect(waiting()).toBeGreaterThan(0);
  await world.gateway.kill();
  const before = count('vector');
  embeddings.gate = undefined;
  resolve();
  await world.start();
  await embedded();
  expect(count('vector')).toBeGreaterThan(before);
  // Of what was stored before the kill nothing is asked for again: a batch that was under way is.
  const asked = embeddings.inputs.flat();
  expect(asked.length - new Set(asked).size).toBeLessThanOrEqual(2 * 64);
});

it('finds by meaning what words do not, names file and line, and taints where the source is untrusted', async () => {
  const found = await asks(
    OLGA,
    searches('what payment is due for my home lease', { count: 1, sources: ['files'] }),
    /^result:/,
  );
  expect(found).toMatch(/docs\/lease\.md:1[0-9]\b|docs\/lease\.md:[1-9]\b/);
  expect(found).toContain('The landlord gets 900 francs');
  expect(found).toMatch(/\[untrusted [0-9a-f]{16}: /);
  // The files of a workspace are untrusted here: what had effects asks now.
  await asks(OLGA, '/new', /^New conversation\./);
});

it('shows one person nothing of another, not even to the owner', async () => {
  await asks(ANNA, 'our puppy Coco swallowed a marble yesterday evening', /^heard:/);
  await asks(OLGA, 'the vault combination is nine nine one one at the bank', /^heard:/);
  const isThere = () => vectorsOf('Coco swallowed') * vectorsOf('vault combination') > 0;
  await world.gateway.skipUntil(isThere);
  await asks(ANNA, '/new', /^New conversation\./);
  const own = await asks(
    ANNA,
    searches('what did the dog eat', { sources: ['conversations'] }),
    /^result:/,
  );
  expect(own).toContain('Coco swallowed a marble');
  expect(own).toMatch(/telegram:721, turn \d+|this conversation, turn \d+/);
  for (const question of ['vault combination bank', 'snow storm birthday']) {
    const others = await asks(ANNA, searches(question), /^result:/);
    expect(others).not.toMatch(/nine nine one one|given birth/);
  }
  for (const question of ['what did the dog eat', 'snow storm birthday']) {
    const others = await asks(OLGA, searches(question), /^result:/);
    expect(others).not.toMatch(/swallowed|given birth/);
  }
});

it('charges what it asks for, and tells its state', async () => {
  const status = await world.nanobot('status');
  expect(status).toMatch(/Search by meaning +\d+ passages with sim-embed/);
  expect(status).toMatch(/Today .*[1-9]\d*(?:\.\d+)? USD|Today .*\$/);
});

it('keeps a conversation on the machine that is to stay there', async () => {
  await asks(ANNA, '/new', /^New conversation\./);
  await asks(ANNA, '/local only', /./);
  telegram.say(ANNA, 'the treasure map is under the floor of the attic');
  await hears(ANNA.id, /No model was asked/);
  await expect.poll(() => count("part WHERE text LIKE '%treasure map%'")).toBeGreaterThan(0);
  await world.gateway.skip(20_000);
  await asks(OLGA, 'a sign that this was indexed', /^heard:/);
  await world.gateway.skipUntil(() => vectorsOf('a sign that this') > 0);
  await asks(ANNA, '/local off', /./);
  expect(embeddings.inputs.flat().join('\n')).not.toContain('treasure map');
});

it('answers from words alone where the server fails, and says so', async () => {
  for (const [fault, said] of [
    [500, /searched by words only: the server failed with status 500/],
    [401, /searched by words only: the server refuses the key/],
    ['redirect', /redirects requests, which is refused/],
    [{ body: '{"data":[]}' }, /answered 0 vectors for 1 texts/],
  ] as const) {
    embeddings.faultOf = ([first]) => (first === 'landlord francs' ? fault : undefined);
    const found = await asks(OLGA, searches('landlord francs', { sources: ['files'] }), /^result:/);
    expect(found).toContain('docs/lease.md');
    expect(found).toMatch(said);
  }
  embeddings.faultOf = () => undefined;
  expect(await home.logs()).not.toContain(EMBEDDING_KEY);
});

it('waits as long as the server asks, and one text that it refuses holds up no other', async () => {
  let busy = 0;
  embeddings.refuses = 'unspeakable';
  embeddings.faultOf = (inputs) => {
    if (busy > 0 || !inputs.some((text) => text.includes('steamer'))) return undefined;
    busy += 1;
    return { status: 429, retryAfter: '120' };
  };
  await writeFile(file('docs/new.md'), 'An unspeakable word stands here, all alone in a file.\n');
  await writeFile(file('docs/newer.md'), 'The steamer leaves the harbour on Thursday at noon.\n');
  await world.gateway.skipUntil(() => busy > 0);
  // A request whose answer is still on its way would be given up while the clock is moved.
  await expect.poll(() => world.nanobot('status')).toContain('the server is busy');
  await world.gateway.skip(110_000);
  expect(vectorsOf('steamer')).toBe(0);
  await world.gateway.skipUntil(() => vectorsOf('steamer') === 1);
  await embedded();
  embeddings.refuses = undefined;
  const asked = searches('when does the boat depart', { count: 1, sources: ['files'] });
  expect(await asks(OLGA, asked, /^result:/)).toContain('docs/newer.md:1');
  await expect.poll(() => home.logs()).toContain('text refused by the embedding model');
});

it('forgets the vectors of what is erased or gone, also while it is off', async () => {
  expect(vectorsOf('combination is nine')).toBeGreaterThan(0);
  await rm(file('docs/newer.md'));
  const isGone = () => count("source WHERE name = 'files/docs/newer.md'") === 0;
  await world.gateway.skipUntil(isGone);
  expect(count('vector WHERE part NOT IN (SELECT id FROM part)')).toBe(0);
  await world.gateway.kill();
  await world.configure({ ...sections(), search: {} });
  await world.start();
  await asks(OLGA, '/forget vault combination', /vault/);
  const before = count('vector');
  telegram.press(OLGA.id, OLGA.id, 'Forget');
  await hears(OLGA.id, /Forgotten:/);
  expect(count('vector')).toBeLessThan(before);
  expect(count('vector WHERE part NOT IN (SELECT id FROM part)')).toBe(0);
  expect(vectorsOf('combination is nine')).toBe(0);
  // The tool is gone, and so is what nothing keeps up to date.
  expect(await asks(OLGA, searches('landlord'), /^result:/)).toMatch(/unknown|no tool/i);
  expect(await world.nanobot('status')).not.toContain('Search by meaning');
  await expect.poll(() => count("source WHERE name LIKE 'files/%'")).toBe(0);
});

it('makes all vectors anew for another model', async () => {
  embeddings.dimensions = 128;
  await world.gateway.kill();
  await world.configure(sections({ model: 'sim-embed-2' }));
  const asked = embeddings.inputs.length;
  await world.start();
  await embedded();
  expect(embeddings.inputs.length).toBeGreaterThan(asked);
  expect(query<{ n: number }>('SELECT DISTINCT length(v) AS n FROM vector')).toEqual([{ n: 128 }]);
  const found = await asks(
    OLGA,
    searches('payment due for my home lease', { count: 1, sources: ['files'] }),
    /^result:/,
  );
  expect(found).toContain('The landlord gets 900 francs');
  expect(embeddings.complaints).toEqual([]);
});
