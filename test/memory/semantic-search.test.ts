// The parts of the search by meaning: what hybrid ranking finds in a set of plain facts, vectors that go
// with their texts, what a server may answer, and a model in this process.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  checkEmbeddings,
  createEmbedder,
  EmbeddingError,
  embedPaid,
} from '../../src/features/semantic-search/embeddings.ts';
import { fused, openVectors, piecesOf } from '../../src/features/semantic-search/vectors.ts';
import type { IndexedPart } from '../../src/kernel/bus/store/text-index.ts';
import { configSchema } from '../../src/kernel/config/config.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { tellingWords } from '../../src/tools/search/rules/search-route.ts';
import {
  EMBEDDING_KEY,
  type EmbeddingFault,
  embeddingOf,
  startEmbeddingServer,
} from '../support/embedding-server.ts';
import { FACTS, QUESTIONS } from '../support/plain-facts.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type IndexProcesses, onEachIndex } from '../support/text-indexes.ts';

const { signal } = new AbortController();
const SCOPE = 'files:';
const DIMENSIONS = 256;
const vectorOf = (text: string) => Float32Array.from(embeddingOf(text, DIMENSIONS));
const part = (text: string, place = 1): IndexedPart => ({
  ...{ place, role: 'note', isForeign: true, at: 0, text },
});

async function openVectorIndex({ open }: IndexProcesses) {
  const index = await open();
  const put = async (name: string, parts: readonly IndexedPart[], scope = SCOPE) => {
    const from = await index.state(name);
    const step = { from, to: { stamp: '', position: 0 }, replaces: true };
    await index.put([{ source: { name, scope, label: name }, step, parts }]);
  };
  const vectors = openVectors(index);
  await vectors.use('sim');
  const embedAll = async () => {
    for (const waiting of await vectors.next(Number.MAX_SAFE_INTEGER, 1000)) {
      const pieces = piecesOf(waiting.text);
      await vectors.put(
        waiting,
        pieces.map(({ offset, text }) => ({ offset, vector: vectorOf(text) })),
      );
    }
  };
  const counts = async () => {
    const { vectors: there, waiting } = await vectors.counts();
    return [there, waiting];
  };
  return { index, vectors, put, embedAll, counts };
}

describe('vectors', () => onEachIndex(testVectors));

function testVectors(processes: () => Promise<IndexProcesses>): void {
  const openIndex = async () => openVectorIndex(await processes());

  it('find more than words alone, in questions that use other words', async () => {
    const { index, vectors, put, embedAll } = await openIndex();
    await put('facts', FACTS.map(part));
    await embedAll();
    const recallAt5 = { words: 0, meaning: 0, both: 0 };
    for (const [question, fact] of QUESTIONS) {
      const options = { scopes: [SCOPE], limit: 50 };
      const words = tellingWords(question).join(' ') || question;
      const byWords = (await index.find(words, { ...options, now: 0 })).map(({ id }) => id);
      const near = (await vectors.nearest(vectorOf(question), options)).map((each) => each.part);
      const isIn = async (ids: readonly number[]) =>
        [...(await vectors.parts(ids.slice(0, 5))).values()].some(({ text }) =>
          text.startsWith(fact),
        );
      if (await isIn(byWords)) recallAt5.words += 1;
      if (await isIn(near)) recallAt5.meaning += 1;
      if (await isIn(fused([byWords, near]))) recallAt5.both += 1;
    }
    expect({ ...recallAt5, of: QUESTIONS.length }).toEqual({
      words: 26,
      meaning: 37,
      both: 37,
      of: 40,
    });
  });

  it('stay with texts that did not change, and go with those that are gone', async () => {
    const { vectors, put, embedAll, counts, index } = await openIndex();
    const lines = ['the first line of the note', 'the second line of the note'];
    await put('note', lines.map(part));
    await embedAll();
    expect(await counts()).toEqual([2, 0]);
    expect(await vectors.dimensions()).toBe(DIMENSIONS);
    await put(
      'note',
      ['a new line on top of all', ...lines.slice(0, 1)].map((text, at) => part(text, at + 5)),
    );
    expect(await counts()).toEqual([1, 1]);
    const [kept] = await vectors.nearest(vectorOf('first line'), { scopes: [SCOPE], limit: 5 });
    expect((await vectors.parts([kept?.part ?? 0])).get(kept?.part ?? 0)).toMatchObject({
      place: 6,
      text: lines[0],
    });
    expect(await index.find('second', { scopes: [SCOPE], limit: 5, now: 0 })).toEqual([]);
    await index.remove('note');
    expect(await counts()).toEqual([0, 0]);
    expect(await vectors.dimensions()).toBeUndefined();
  });

  it('are those of another process, as near as there', async () => {
    const shared = await processes();
    const [one, other] = [await openVectorIndex(shared), await openVectorIndex(shared)];
    await one.put('facts', FACTS.slice(0, 20).map(part));
    expect(await other.counts()).toEqual([0, 20]);
    await one.embedAll();
    expect(await other.counts()).toEqual([20, 0]);
    const near = ({ vectors }: typeof one) =>
      vectors.nearest(vectorOf(FACTS[3] ?? ''), { scopes: [SCOPE], limit: 3 });
    const [best] = await near(other);
    expect(await near(other)).toEqual(await near(one));
    expect(best?.similarity).toBeGreaterThan(0);
  });

  it('are not stored for a text that was replaced while the server worked', async () => {
    const { vectors, put, counts } = await openIndex();
    await put('note', [part('what is to be forgotten soon')]);
    const [waiting] = await vectors.next(Number.MAX_SAFE_INTEGER, 1);
    if (waiting === undefined) throw new Error('nothing waits');
    await put('note', [part('something else entirely now')]);
    await vectors.put(waiting, [{ offset: 0, vector: vectorOf(waiting.text) }]);
    expect(await counts()).toEqual([0, 1]);
  });

  it('of other scopes are not seen, and those of a model that is gone are made anew', async () => {
    const { vectors, put, embedAll, counts } = await openIndex();
    await put('mine', [part('the cat sleeps on the warm stove')], 'notes:');
    await put('theirs', [part('the cat of somebody else sleeps')], 'notes:people/p/');
    await embedAll();
    const near = (scopes: readonly string[]) =>
      vectors.nearest(vectorOf('cat sleeps'), { scopes, limit: 5 });
    expect(await near(['notes:'])).toHaveLength(1);
    expect(await near(["notes:', 'notes:people/p/"])).toEqual([]);
    expect(await near([])).toEqual([]);
    expect(await near(['notes:', 'notes:people/p/'])).toHaveLength(2);
    await vectors.leaveOut('notes:people/');
    expect(await counts()).toEqual([1, 1]);
    await vectors.use('another');
    expect(await counts()).toEqual([0, 2]);
    await embedAll();
    await vectors.unusable();
    await vectors.use('another');
    expect(await counts()).toEqual([0, 2]);
  });
}

describe('ranking', () => {
  it('joins lists by ranks', () => {
    expect(
      fused([
        [1, 2, 3],
        [3, 4],
      ]),
    ).toEqual([3, 1, 2, 4]);
    expect(fused([[], [7]])).toEqual([7]);
  });

  it('cuts a long text at its sentences and leaves out what says nothing', () => {
    expect(piecesOf('ok, thanks')).toEqual([]);
    const text = Array.from({ length: 60 }, (_, at) => `This is sentence number ${at}.`).join(' ');
    const pieces = piecesOf(text);
    expect(pieces.length).toBe(2);
    for (const { offset, text: piece } of pieces) {
      expect(piece.length).toBeLessThanOrEqual(1000);
      expect(piece).toMatch(/^This .*\.$/);
      expect(text.slice(offset).trimStart().startsWith(piece)).toBe(true);
    }
    expect(piecesOf('字'.repeat(2500)).map(({ text: piece }) => piece.length)).toEqual([
      1000, 1000, 500,
    ]);
  });
});

async function openEmbedder(embeddings: object, rest: object = {}, env = {}) {
  const root = await temporaryFolder();
  const config = configSchema.parse({ version: 1, ...rest, search: { embeddings } });
  const deps = { config, env, home: homeOf({ NANOBOT_HOME: root }), clock: systemClock };
  return { root, config, deps, open: () => createEmbedder(deps) };
}

describe('an embedding model', () => {
  it('of a server answers vectors of length 1, with the words before them that it was trained with', async () => {
    await using server = await startEmbeddingServer();
    const access = { apiBase: `${server.base}/`, apiKey: EMBEDDING_KEY };
    const { open } = await openEmbedder({ ...access, model: 'nomic-embed-text', dimensions: 64 });
    const embedder = open();
    const { vectors, tokens } = await embedder.embed(['one', 'two words'], 'passage', signal);
    expect(vectors.map(({ length }) => length)).toEqual([64, 64]);
    expect(Math.hypot(...(vectors[1] ?? []))).toBeCloseTo(1, 5);
    expect(tokens).toBeGreaterThan(0);
    await embedder.embed(['one'], 'query', signal);
    expect(server.inputs).toEqual([
      ['search_document: one', 'search_document: two words'],
      ['search_query: one'],
    ]);
    expect([embedder.isElsewhere, embedder.price]).toEqual([false, 0]);
    expect(embedder.id).not.toContain(EMBEDDING_KEY);
  });

  it('says what is wrong, in words without the key', async () => {
    await using server = await startEmbeddingServer();
    const access = { apiBase: server.base, apiKey: EMBEDDING_KEY };
    const { open } = await openEmbedder({ ...access, model: 'sim' });
    const cases: readonly (readonly [EmbeddingFault, string, RegExp])[] = [
      [401, 'embedding_key_refused', /refuses the key/],
      [404, 'embedding_not_found', /address or model/],
      [429, 'embedding_busy', /busy/],
      [400, 'embedding_rejected', /status 400/],
      [503, 'embedding_failed', /status 503/],
      ['redirect', 'embedding_unreachable', /redirects requests/],
      [{ body: '<html>' }, 'embedding_malformed', /no embeddings/],
      [
        { body: '{"data":[{"index":1,"embedding":[1]}]}' },
        'embedding_malformed',
        /1 vectors for 1/,
      ],
    ];
    for (const [fault, code, message] of cases) {
      server.faultOf = () => fault;
      const error: unknown = await open()
        .embed(['text'], 'query', signal)
        .catch((each: unknown) => each);
      expect(error).toBeInstanceOf(EmbeddingError);
      expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
      expect(String(error)).not.toContain(EMBEDDING_KEY);
    }
  });

  it('of a provider gets the key of the provider, and none of another address', async () => {
    const { open } = await openEmbedder({ model: 'openai/text-embedding-3-small' });
    expect(open).toThrow(/no API key for openai/);
    const known = { providers: { openai: { apiKey: 'sk-of-openai' } } };
    const named = await openEmbedder({ model: 'openai/text-embedding-3-small' }, known);
    expect(named.open()).toMatchObject({ isElsewhere: true, price: 0.02 });
    await using server = await startEmbeddingServer('');
    const own = await openEmbedder({ model: 'sim', apiBase: server.base }, known);
    await expect(own.open().embed(['text'], 'query', signal)).rejects.toThrow(/refuses the key/);
  });

  it('is charged by what the server counts, and not where it refused', async () => {
    await using server = await startEmbeddingServer();
    const { open } = await openEmbedder({
      model: 'sim',
      apiBase: server.base,
      apiKey: EMBEDDING_KEY,
    });
    const embedder = { ...open(), price: 1000 };
    const settled: number[] = [];
    const reserved: number[] = [];
    const spending = {
      async reservePaid({ micros }: { readonly micros: number }) {
        reserved.push(micros);
        return { kind: 'reserved' as const, settle: (took: number) => void settled.push(took) };
      },
    };
    const chat = { channel: 'terminal', account: 'default', chat: 'x' } as never;
    const payer = { chat, sender: { kind: 'system', source: 'heartbeat' } } as const;
    const paid = { embedder, spending, payer };
    await embedPaid(['twelve chars'], 'passage', paid, signal);
    server.faultOf = () => 401;
    await expect(embedPaid(['twelve chars'], 'passage', paid, signal)).rejects.toThrow();
    expect(settled).toEqual([3000, 0]);
    expect(reserved[0]).toBeGreaterThanOrEqual(3000);
  });

  it('in this process needs its package, which may be in the home', async () => {
    const { root, deps, config, open } = await openEmbedder({ model: 'transformers/Own/tiny' });
    const missing = await checkEmbeddings(deps, config, false);
    expect(missing).toMatchObject([
      { level: 'fail', text: expect.stringContaining(`npm install --prefix ${root}`) },
    ]);
    await expect(open().embed(['text'], 'query', signal)).rejects.toThrow(/is not installed/);
    const folder = join(root, 'node_modules/@huggingface/transformers');
    await mkdir(folder, { recursive: true });
    await writeFile(
      join(folder, 'package.json'),
      '{"name":"@huggingface/transformers","type":"module","exports":"./index.js"}',
    );
    await writeFile(
      join(folder, 'index.js'),
      `export const env = {};
       export const pipeline = async (task, model, { dtype }) => async (texts, options) => ({
         tolist: () => texts.map((text) =>
           [text.length, env.cacheDir.length, task === 'feature-extraction' && dtype === 'q8' ? 3 : 0]) });`,
    );
    const { vectors } = await open().embed(['some', 'text here'], 'passage', signal);
    expect(vectors).toHaveLength(2);
    expect(vectors[0]?.[2]).toBeGreaterThan(0);
    expect(await checkEmbeddings(deps, config, true)).toMatchObject([
      { level: 'ok', text: expect.stringContaining('answers with 3 numbers') },
    ]);
  });

  it('is named by the doctor where there is none', async () => {
    const { deps, config } = await openEmbedder({});
    expect(await checkEmbeddings(deps, config, true)).toMatchObject([
      { level: 'ok', text: expect.stringContaining('set search.embeddings.model') },
    ]);
  });
});
