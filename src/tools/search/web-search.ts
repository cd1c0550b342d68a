// Tool: searches the web by the engines that are set up, the next one where one fails.

import { z } from 'zod';
import { ToolError } from '../../kernel/message/errors.ts';
import type { SafeFetch } from '../../lib/net/safe-fetch.ts';
import { readDescription } from '../description.ts';
import type { Tool } from '../tool.ts';
import { QUERY_NAMES } from '../toolbox.ts';
import { ENGINES, type SearchEngine, type SearchSettings, type WebHit } from './engines.ts';

export type WebSearchDeps = {
  readonly settings: () => SearchSettings;
  /** The way to an engine that the owner configured: it may be local. */
  fetchFrom(origin: string): SafeFetch;
  /** Masks the values of configured secrets. */
  readonly redact: (text: string) => string;
};

const MAX_QUERY_CHARS = 400;
const MAX_COUNT = 20;
const MAX_BYTES = 2_000_000;

const input = z.object({
  query: z
    .string()
    .trim()
    .min(1)
    .max(MAX_QUERY_CHARS)
    .describe('What to search for, in few words.'),
  count: z.int().min(1).max(MAX_COUNT).optional().describe('How many hits; left out: a handful.'),
});
type Input = z.infer<typeof input>;

export function createWebSearch(deps: WebSearchDeps): Tool<Input> {
  const ready = () => readyEngines(deps.settings());
  return {
    name: 'web_search',
    aliases: [
      'WebSearch',
      'google',
      'google_search',
      'brave_search',
      'search_web',
      'internet_search',
    ],
    parameterAliases: {
      query: QUERY_NAMES,
      count: ['max_results', 'num_results', 'limit', 'n'],
    },
    ...readDescription('web_search'),
    access: 'web',
    taints: true,
    input,
    isAvailable: () => ready().length > 0,
    unavailableBecause: () =>
      'no engine is set up: set tools.web.search.searxngUrl or tools.web.search.braveApiKey',
    describe: ({ query }) => query,
    async run({ query, count = deps.settings().maxResults }, { signal }) {
      if (deps.redact(query) !== query) {
        throw new ToolError('blocked', 'the question holds a secret of the configuration');
      }
      const problems: string[] = [];
      for (const engine of ready()) {
        const found = await ask(engine, query, count, deps, signal).catch((error: unknown) => {
          signal.throwIfAborted();
          problems.push(`${engine.name}: ${error instanceof Error ? error.message : 'failed'}`);
          return undefined;
        });
        if (found !== undefined) return hitsText(found.slice(0, count));
      }
      throw new ToolError('execution', `no engine answered (${problems.join('; ')})`);
    },
  };
}

function readyEngines(settings: SearchSettings): readonly SearchEngine[] {
  return settings.engines.flatMap((name) =>
    ENGINES.filter((engine) => engine.name === name && engine.isReady(settings)),
  );
}

async function ask(
  engine: SearchEngine,
  query: string,
  count: number,
  { settings, fetchFrom }: WebSearchDeps,
  signal: AbortSignal,
): Promise<readonly WebHit[]> {
  const { url, headers } = engine.request(query, count, settings());
  const timeoutMs = settings().timeoutSecs * 1000;
  const limits = { signal, timeoutMs, maxBytes: MAX_BYTES, maxDecompressedBytes: MAX_BYTES };
  const { status, body } = await fetchFrom(new URL(url).origin)(url, { ...limits, headers });
  if (status !== 200) {
    const hint = engine.hint(status);
    throw new Error(`status ${status}${hint === '' ? '' : `, ${hint}`}`);
  }
  return engine.read(parsed(body));
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'));
  } catch {
    throw new Error('the answer is no JSON');
  }
}

function hitsText(hits: readonly WebHit[]): string {
  if (hits.length === 0) return 'Nothing was found.';
  return hits
    .map(({ title, url, snippet }, index) => {
      const lines = [`${index + 1}. ${title === '' ? url : title}`, `   ${url}`];
      return [...lines, ...(snippet === '' ? [] : [`   ${snippet}`])].join('\n');
    })
    .join('\n');
}
