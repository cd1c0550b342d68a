// The tools that look things up, against services on this machine that answer as the real ones do.

import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { NO_RIGHTS } from '../../src/kernel/access/rights.ts';
import { configSchema } from '../../src/kernel/config/config.ts';
import { createSearchTools } from '../../src/tools/search/search.ts';
import type { Tool } from '../../src/tools/tool.ts';
import { toolboxSettings } from '../../src/tools/toolbox.ts';
import { createSearchSetup, type SearchSetup } from '../support/search-setup.ts';
import { createWorkspace } from './workspace-fixture.ts';

type Reply = { readonly status?: number; readonly body: unknown };

/** Answers by path; what it was asked stands in `asked`, with what was sent in `bodies`. */
async function startService(replies: Readonly<Record<string, Reply>>) {
  const asked: IncomingMessage[] = [];
  const bodies: Promise<string>[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    bodies.push(text(request));
    const path = new URL(request.url ?? '', 'http://x').pathname;
    const { status = 200, body } = replies[path] ?? { status: 404, body: {} };
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return { url: `http://127.0.0.1:${port}`, asked, bodies };
}

async function createTools(setup: SearchSetup = {}) {
  const world = await createWorkspace();
  const recall = world.tools.find(({ name }) => name === 'recall') as Tool;
  const tools = createSearchTools(
    createSearchSetup(setup),
    { files: world.files },
    { memory: recall },
  );
  const tool = (name: string) => tools.find((one) => one.name === name) as Tool;
  const run = (name: string, input: unknown, more = {}) =>
    tool(name).run(tool(name).input.parse(input), { ...world.context, ...more });
  return { ...world, tool, run };
}

const SEARXNG = {
  results: [
    { url: 'https://a.example/1', title: 'First', content: 'about tea\u202E' },
    { url: 'https://b.example/2', title: 'Second', content: null },
    { url: 'javascript:alert(1)', title: 'Third', content: 'no page' },
    { url: 'https://d.example/\n3. https://e.example', title: 'Fourth', content: 'two lines' },
  ],
};
const BRAVE = {
  web: {
    results: [{ url: 'https://c.example', title: 'B', description: '<strong>tea</strong> shop' }],
  },
};

describe('web_search', () => {
  it('does not exist until an engine is set up', async () => {
    expect((await createTools()).tool('web_search').isAvailable?.()).toBe(false);
    expect((await createTools({ keys: { brave: 'k' } })).tool('web_search').isAvailable?.()).toBe(
      true,
    );
  });

  it('lists what SearXNG found', async () => {
    const { url, asked } = await startService({ '/search': { body: SEARXNG } });
    const { run } = await createTools({ search: { searxngUrl: `${url}/` } });
    expect(await run('web_search', { query: 'green tea' })).toBe(
      '1. First\n   https://a.example/1\n   about tea\n2. Second\n   https://b.example/2',
    );
    expect(asked[0]?.url).toBe('/search?q=green+tea&format=json');
  });

  it('asks the next engine where one fails, with its key in a header alone', async () => {
    const { url, asked } = await startService({
      '/search': { status: 403, body: 'no' },
      '/res/v1/web/search': { body: BRAVE },
    });
    const { run } = await createTools({
      search: { searxngUrl: url, addresses: { brave: url } },
      keys: { brave: 'brave-key-1' },
    });
    expect(await run('web_search', { query: 'tea', count: 3 })).toContain('tea shop');
    expect(asked[1]?.headers['x-subscription-token']).toBe('brave-key-1');
    expect(asked.map((request) => request.url).join()).not.toContain('brave-key-1');
  });

  it('says what to do where none answers', async () => {
    const { url } = await startService({
      '/search': { status: 403, body: 'no' },
      '/res/v1/web/search': { status: 429, body: {} },
    });
    const { run } = await createTools({
      search: { searxngUrl: url, addresses: { brave: url } },
      keys: { brave: 'k' },
    });
    await expect(run('web_search', { query: 'tea' })).rejects.toThrow(/search\.formats.*quota/);
    const broken = await startService({ '/search': { body: '<html>' } });
    const other = await createTools({ search: { searxngUrl: broken.url } });
    await expect(other.run('web_search', { query: 'tea' })).rejects.toThrow(/not JSON/);
  });

  it('carries no secret out', async () => {
    const { url, asked } = await startService({ '/search': { body: SEARXNG } });
    const { run } = await createTools({ search: { searxngUrl: url } });
    await expect(run('web_search', { query: 'the-secret' })).rejects.toThrow(/secret/);
    expect(asked).toEqual([]);
  });

  const ONE_HIT = 'https://c.example';
  const HITS = {
    brave: {
      web: { results: [{ url: ONE_HIT, title: 'T', description: '<strong>tea</strong>' }] },
    },
    tavily: { results: [{ url: ONE_HIT, title: 'T', content: 'tea' }] },
    exa: { results: [{ url: ONE_HIT, title: 'T', text: 'tea' }] },
    serper: { organic: [{ link: ONE_HIT, title: 'T', snippet: 'tea' }] },
    google: { items: [{ link: ONE_HIT, title: 'T', snippet: 'tea' }] },
  };

  it.each([
    ['brave', '/res/v1/web/search', 'q=green+tea&count=2', undefined, 'x-subscription-token'],
    ['tavily', '/search', '', { query: 'green tea', max_results: 2 }, 'authorization'],
    [
      'exa',
      '/search',
      '',
      { query: 'green tea', numResults: 2, contents: { text: { maxCharacters: 500 } } },
      'x-api-key',
    ],
    ['serper', '/search', '', { q: 'green tea', num: 2 }, 'x-api-key'],
    ['google', '/customsearch/v1', 'q=green+tea&cx=cx-1&num=2', undefined, 'x-goog-api-key'],
  ] as const)('asks %s as its interface says', async (engine, path, query, sent, header) => {
    const { url, asked, bodies } = await startService({ [path]: { body: HITS[engine] } });
    const { run } = await createTools({
      search: { engines: [engine], addresses: { [engine]: url }, googleEngineId: 'cx-1' },
      keys: { [engine]: 'key-1' },
    });
    expect(await run('web_search', { query: 'green tea', count: 2 })).toBe(
      '1. T\n   https://c.example\n   tea',
    );
    const [request] = asked;
    expect(request?.url).toBe(query === '' ? path : `${path}?${query}`);
    expect(request?.headers[header]).toMatch(/^(?:Bearer )?key-1$/);
    expect(request?.method).toBe(sent === undefined ? 'GET' : 'POST');
    if (sent !== undefined) expect(JSON.parse((await bodies[0]) ?? '')).toEqual(sent);
  });
});

describe('web_search without a key', () => {
  const DUCK = `<div class="results">
    <div class="result result--ad"><a class="result__a" href="https://ad.example">Ad</a></div>
    <div class="result results_links"><h2><a class="result__a"
      href="//duckduckgo.com/l/?uddg=https%3A%2F%2Ftea.example%2Fa%3Fb%3D1&amp;rut=x">Tea &amp; more</a></h2>
      <a class="result__snippet" href="x">all about <b>tea</b></a></div>
    <div class="result"><a class="result__a" href="https://plain.example/">Plain</a></div></div>`;
  const WIKIPEDIA = {
    query: {
      search: [
        { title: 'Green tea', snippet: '<span class="searchmatch">Green</span> &quot;tea&quot;' },
      ],
    },
  };

  const publicEngines = (url: string, more = {}): SearchSetup => ({
    search: {
      engines: ['duckduckgo', 'wikipedia'],
      addresses: { duckduckgo: url, wikipedia: `${url}/{language}` },
      ...more,
    },
  });

  it('is there on a fresh installation', async () => {
    const search = configSchema.parse({}).tools.web.search;
    expect(search.engines.slice(-2)).toEqual(['duckduckgo', 'wikipedia']);
    expect((await createTools({ search })).tool('web_search').isAvailable?.()).toBe(true);
  });

  it('reads the page of DuckDuckGo without its advertisements', async () => {
    const { url, asked } = await startService({ '/html/': { body: DUCK } });
    const { run } = await createTools(publicEngines(url));
    expect(await run('web_search', { query: 'green tea' })).toBe(
      [
        '1. Tea & more\n   https://tea.example/a?b=1\n   all about tea',
        '2. Plain\n   https://plain.example/',
      ].join('\n'),
    );
    expect(asked[0]?.url).toBe('/html/?q=green+tea');
  });

  it('asks Wikipedia where DuckDuckGo refuses, and leaves DuckDuckGo alone for ten minutes', async () => {
    const replies = {
      '/html/': { status: 202, body: 'Unfortunately, bots use DuckDuckGo too.' } as Reply,
      '/de/w/api.php': { body: WIKIPEDIA },
    };
    const { url, asked } = await startService(replies);
    const { run, clock } = await createTools(publicEngines(url, { wikipediaLanguage: 'de' }));
    const found = `1. Green tea\n   ${url}/de/wiki/Green_tea\n   Green "tea"`;
    expect(await run('web_search', { query: 'green tea' })).toBe(found);
    await clock.advance(5000);
    expect(await run('web_search', { query: 'green tea' })).toBe(found);
    const ducks = () => asked.filter((request) => request.url?.startsWith('/html/')).length;
    expect(ducks()).toBe(1);
    replies['/html/'] = { body: DUCK };
    await clock.advance(600_000);
    expect(await run('web_search', { query: 'green tea' })).toContain('tea.example');
    expect(ducks()).toBe(2);
  });

  it('keeps requests to a public engine apart', async () => {
    const { url, asked } = await startService({ '/html/': { body: DUCK } });
    const { run, clock } = await createTools(publicEngines(url));
    await run('web_search', { query: 'one' });
    const second = run('web_search', { query: 'two' });
    await vi.waitUntil(() => clock.pending > 0);
    expect(asked).toHaveLength(1);
    await clock.advance(2000);
    await second;
    expect(asked).toHaveLength(2);
  });
});

describe('search_files', () => {
  async function createNotes() {
    const tools = await createTools();
    const { workspace, home } = tools;
    await mkdir(join(workspace, 'people/eve/memory'), { recursive: true });
    await writeFile(join(workspace, 'notes/flat.md'), 'Rent of the flat: 900\nDeposit paid\n');
    await writeFile(join(workspace, 'notes/car.txt'), 'the FLAT tyre\n');
    await writeFile(join(workspace, 'people/eve/memory/MEMORY.md'), 'flat of Eve\n');
    await writeFile(join(workspace, 'picture.bin'), Buffer.from([0, 102, 108, 97, 116]));
    await symlink(join(home, 'config.json'), join(workspace, 'link.md'));
    return tools;
  }

  it.each([
    [{ query: 'flat rent' }, ['notes/flat.md:1: Rent of the flat: 900']],
    [{ query: 'flat', name: '*.txt' }, ['notes/car.txt:1: the FLAT tyre']],
    [{ name: 'notes/**/*.md' }, ['notes/flat.md']],
    [{ query: '^dep.*paid$', regex: true }, ['notes/flat.md:2: Deposit paid']],
    [{ query: 'outside' }, ['Nothing was found.']],
    [
      { query: 'FLAT', path: 'notes', count: 1 },
      ['notes/car.txt:1: the FLAT tyre', '[there may be more: narrow it down]'],
    ],
  ])('finds %j', async (input, lines) => {
    const { run } = await createNotes();
    expect((await run('search_files', input)).split('\n')).toEqual(lines);
  });

  it('shows nobody the notes of others, and follows no link', async () => {
    const { run } = await createNotes();
    const guest = { person: { notes: 'people/ann/' } };
    expect(await run('search_files', { query: 'flat' }, guest)).not.toContain('Eve');
    expect(await run('search_files', { query: 'Eve' })).not.toContain('people/eve');
    expect(await run('search_files', { query: 'secret outside' })).toBe('Nothing was found.');
    await expect(run('search_files', { query: 'x', path: '../' })).rejects.toThrow();
  });

  it('is not stopped by any pattern', async () => {
    const { run, workspace } = await createNotes();
    await writeFile(join(workspace, 'long.txt'), 'a'.repeat(100_000));
    expect(await run('search_files', { query: '(a+)+$b', regex: true })).toBe('Nothing was found.');
    await expect(run('search_files', { query: '(?=x)', regex: true })).rejects.toThrow(/RE2/);
    await expect(run('search_files', { query: '' })).rejects.toThrow(/query, a name/);
  });

  it('lets other work pass while it searches a large text', async () => {
    const { files, run, workspace } = await createNotes();
    await writeFile(join(workspace, 'large.txt'), 'a line like all the others\n'.repeat(30_000));
    const read = vi.spyOn(files, 'read');
    let turns = 0;
    const spin = () => {
      if (read.mock.settledResults[0]?.type === 'fulfilled') turns += 1;
      spinning = setImmediate(spin);
    };
    let spinning = setImmediate(spin);
    onTestFinished(() => clearImmediate(spinning));
    const input = { query: 'nobody (says|writes)', name: 'large.txt', regex: true };
    expect(await run('search_files', input)).toBe('Nothing was found.');
    expect(turns).toBeGreaterThan(5);
  });
});

describe('search', () => {
  it('asks what fits, side by side, and says where each answer is from', async () => {
    const { url } = await startService({ '/search': { body: SEARXNG } });
    const { run, workspace, memory, context } = await createTools({ search: { searxngUrl: url } });
    await memory.remember('My favourite tea is Assam', context.person.notes);
    await writeFile(join(workspace, 'notes/tea.md'), 'Tea list: Assam, Darjeeling');
    const all = await run('search', { query: 'what tea do I like, my notes and the latest news' });
    expect(all).toMatch(
      /## memory[\s\S]*Assam[\s\S]*## files[\s\S]*Darjeeling[\s\S]*## web[\s\S]*First/,
    );
    const files = await run('search', { query: 'Darjeeling', sources: ['files'] });
    expect(files).toMatch(/^## files\nnotes\/tea\.md:1/);
  });

  it('asks further where those that fit found nothing, and of the web nothing that is the person’s own', async () => {
    const { url, asked } = await startService({ '/search': { body: SEARXNG } });
    const { run, workspace } = await createTools({ search: { searxngUrl: url } });
    await writeFile(join(workspace, 'notes/visit.md'), 'Dentist on Friday');
    const found = await run('search', { query: 'when is my dentist appointment' });
    expect(found).toMatch(/^## (?:web|files)\n/);
    const own = await run('search', { query: 'do I remember the dentist' });
    expect(own).toMatch(/^## files\nnotes\/visit\.md:1.*\n\n\[nothing found in: memory\]/);
    const before = asked.length;
    expect(await run('search', { query: 'my passphrase hummingbird' })).toBe(
      '[nothing found in: memory, files]',
    );
    expect(asked).toHaveLength(before);
    expect(await run('search', { query: 'hummingbird', sources: ['memory'] })).toBe(
      '[nothing found in: memory]',
    );
  });

  it('asks no tool that is switched off', async () => {
    const { run, memory, context } = await createTools({ switchedOff: ['recall'] });
    await memory.remember('My favourite tea is Assam', context.person.notes);
    expect(await run('search', { query: 'what is my favourite tea' })).not.toContain('## memory');
    const asked = run('search', { query: 'my tea', sources: ['memory'] });
    await expect(asked).rejects.toThrow(/memory not available here; there are: files/);
    const off = toolboxSettings(configSchema.parse({ tools: { web: { enabled: false } } }));
    expect(off.disabled).toEqual(expect.arrayContaining(['web_fetch', 'web_search']));
  });

  it('tells of one that fails, and of one that may not be asked', async () => {
    const { url } = await startService({ '/search': { status: 500, body: '' } });
    const { run, workspace, context } = await createTools({ search: { searxngUrl: url } });
    await writeFile(join(workspace, 'notes/tea.md'), 'Assam');
    const sources = ['files', 'web'];
    expect(await run('search', { query: 'Assam', sources })).toMatch(/## files[\s\S]*\[web: .*500/);
    const rights = { ...context.rights, web: 'ask' as const };
    const asked = await run('search', { query: 'Assam', sources }, { rights });
    expect(asked).toContain('[not available here: web]');
    const mayUse = (tool: string) => tool !== 'search_files';
    const confined = await run(
      'search',
      { query: 'Assam', sources: ['files', 'memory'] },
      { mayUse },
    );
    expect(confined).toMatch(/not available here: files/);
    const nothing = run('search', { query: 'Assam' }, { rights: NO_RIGHTS });
    await expect(nothing).rejects.toThrow(/there are: none/);
    await expect(run('search', { query: 'x', sources: ['web'] })).rejects.toThrow(
      /no source answered/,
    );
  });
});

describe('financial_search', () => {
  const SERVICE = {
    '/prices/snapshot': { body: { snapshot: { ticker: 'AAPL', price: 201.5 } } },
    '/financials/income-statements': { body: { income_statements: [{ revenue: 391 }] } },
    '/crypto/prices/snapshot': { body: { snapshot: { ticker: 'BTC-USD', price: 9 } } },
    '/news': { body: { news: [] } },
  };

  it('does not exist without its key, and then documents what it asks', async () => {
    expect((await createTools()).tool('financial_search').isAvailable?.()).toBe(false);
    const tool = (await createTools({ financeKey: 'fk' })).tool('financial_search');
    expect(tool.isAvailable?.()).toBe(true);
    expect(tool.guidance).toMatch(/income_statements[\s\S]*crypto_price/);
  });

  it('puts a question to the addresses that have the figures', async () => {
    const { url, asked } = await startService(SERVICE);
    const { run } = await createTools({ financeBase: url, financeKey: 'fk-1' });
    const text = await run('financial_search', {
      query: '$AAPL price and revenue, last 3 quarters',
    });
    expect(text).toMatch(/## income_statements\nAAPL: .*391[\s\S]*|## price\nAAPL: .*201\.5/);
    expect(text).toContain('201.5');
    expect(asked.map((request) => request.url).sort()).toEqual([
      '/financials/income-statements?ticker=AAPL&period=quarterly&limit=3',
      '/prices/snapshot?ticker=AAPL',
    ]);
    expect(asked.every((request) => request.headers['x-api-key'] === 'fk-1')).toBe(true);
    expect(await run('financial_search', { query: 'BTC-USD price' })).toContain('"price":9');
    expect(await run('financial_search', { query: '$AAPL news' })).toBe('[nothing found in: news]');
  });

  it('says what is missing or refused', async () => {
    const { url } = await startService({ '/prices/snapshot': { status: 402, body: {} } });
    const { run } = await createTools({ financeBase: url, financeKey: 'fk' });
    await expect(run('financial_search', { query: 'facts and price of apple' })).rejects.toThrow(
      /^name the companies by their ticker[^;]*$/,
    );
    await expect(run('financial_search', { query: '$AAPL price' })).rejects.toThrow(/credit/);
  });
});
