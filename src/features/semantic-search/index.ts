// Installs the search by meaning: a tool that finds passages of notes, conversations and documents
// by words and by vectors, and the background task that makes the vectors.

import { posix } from 'node:path';
import { z } from 'zod';
import { type PaidCalls, SpendingRefusedError } from '../../agent/agent.ts';
import type { FoundPart } from '../../kernel/bus/store/text-index.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { firstSeqOf } from '../../kernel/message/ids.ts';
import { reachesOthers } from '../../kernel/message/untrusted.ts';
import { SESSION_SOURCES } from '../../kernel/sessions/index-file.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import { headOf, nameOnLine } from '../../lib/text/cut.ts';
import { PROVENANCE, type Provenance } from '../../tools/files/provenance.ts';
import { hitText } from '../../tools/read-back.ts';
import { tellingWords } from '../../tools/search/rules/search-route.ts';
import { defineTool, type Tool, type ToolContext } from '../../tools/tool.ts';
import { QUERY_NAMES } from '../../tools/toolbox.ts';
import { LOCAL_ONLY } from '../local-models/index.ts';
import { MEMORY, type Memory } from '../memory/index.ts';
import { PAID_CALLS } from '../spending/index.ts';
import { createEmbedder, type Embedder, EmbeddingError, embedPaid } from './embeddings.ts';
import { contentHash, fileScopes, isPlain, MeaningIndexing } from './indexing.ts';
import { FILE_SOURCES, MEANING_SOURCES } from './settings.ts';
import { fused, openVectors, piecesOf, type Vectors } from './vectors.ts';

export function install(kernel: Kernel): void {
  const { live, clock, log, env, home, add } = kernel;
  const memory = kernel.use(MEMORY);
  const spending = kernel.use(PAID_CALLS);
  const vectors = openVectors(memory.index);
  let made: { readonly config: unknown; readonly embedder: Embedder } | undefined;
  const embedder = () => {
    const { config } = live;
    if (made?.config !== config) {
      made = { config, embedder: createEmbedder({ config, env, home, clock }) };
    }
    return made.embedder;
  };
  const indexing = new MeaningIndexing({
    ...kernel,
    ...{ memory, vectors, spending, embedder, only: kernel.use(LOCAL_ONLY) },
  });
  const tool = createSemanticSearch({
    ...{ live, log, memory, vectors, spending, embedder, own: kernel.use(PROVENANCE) },
  });
  add.tools(() => [tool]);
  add.task({ name: 'search by meaning', isOnce: true, run: (signal) => indexing.run(signal) });
  add.reconfigured(() => indexing.reconfigured());
  add.status({ lines: async () => [await indexing.line()] });
}

type SemanticSearchDeps = Pick<Kernel, 'live' | 'log'> & {
  readonly memory: Pick<Memory, 'index' | 'files' | 'scopesOf'>;
  readonly vectors: Vectors;
  readonly spending: PaidCalls;
  readonly own: Provenance;
  /** @throws EmbeddingError */
  embedder(): Embedder;
};

const MAX_QUERY_CHARS = 1000;
const DEFAULT_HITS = 8;
const MAX_HITS = 30;
/** Of each way to search, before they are joined. */
const CANDIDATES = 50;
const SHOWN_CHARS = 1000;
const MAX_FILE_BYTES = 20_000_000;
/** Reserved for the lines around a hit. */
const FRAME_CHARS = 300;
const EXTRACT = /(?:^|\/)memory\/sessions\//;

const input = z.object({
  query: z.string().trim().min(1).max(MAX_QUERY_CHARS).describe('What to find, in plain words.'),
  sources: z.array(z.enum(MEANING_SOURCES)).optional().describe('Only these; default: all.'),
  count: z.int().min(1).max(MAX_HITS).default(DEFAULT_HITS).describe('Maximum number of hits.'),
});
type Input = z.infer<typeof input>;

/** `isOwn`: it holds no untrusted content. */
type Shown = { readonly text: string; readonly isOwn: boolean };

function createSemanticSearch(deps: SemanticSearchDeps): Tool {
  return defineTool({
    name: 'semantic_search',
    aliases: ['vector_search', 'search_by_meaning', 'knowledge_search', 'search_knowledge_base'],
    parameterAliases: { query: ['question', ...QUERY_NAMES], count: ['limit', 'top_k', 'k'] },
    access: 'read',
    taints: true,
    input,
    describe: ({ query }) => query,
    async run(asked, context) {
      const { hits, note } = await found(asked, context, deps);
      const shown: Shown[] = [];
      let room = deps.live.defaults.maxToolResultChars;
      for (const hit of hits) {
        const one = await shownHit(hit, asked.query, context, deps);
        if (one === undefined) continue;
        room -= one.text.length + 2;
        if (room < FRAME_CHARS && shown.length > 0) break;
        shown.push(one);
        if (shown.length >= asked.count) break;
      }
      if (shown.every(({ isOwn }) => isOwn)) context.own?.();
      const texts = shown.length === 0 ? ['Nothing was found.'] : shown.map(({ text }) => text);
      return [...texts, ...(note === undefined ? [] : [`[${note}]`])].join('\n\n');
    },
  }) as Tool;
}

/** `offset`: of the piece that is meant; undefined where words were found. */
type Hit = { readonly part: FoundPart; readonly offset: number | undefined };

async function found(
  { query, sources = [...MEANING_SOURCES] }: Input,
  context: ToolContext,
  deps: SemanticSearchDeps,
): Promise<{ readonly hits: readonly Hit[]; readonly note: string | undefined }> {
  const { live, memory, vectors } = deps;
  const open = await memory.scopesOf(context);
  const isHere = context.workspace === live.defaults.workspace;
  const files = isHere ? fileScopes(context.person.notes) : [];
  const all = { ...open, files };
  const wanted = live.config.search.embeddings.sources.filter((each) => sources.includes(each));
  const scopes = wanted.flatMap((source) => all[source]);
  const now = context.clock.now();
  const words = tellingWords(query).join(' ') || query;
  const byWords = await memory.index.find(words, { scopes, limit: CANDIDATES, now });
  const { near, note } = await nearest(query, scopes, context, deps);
  const offsets = new Map(near.map(({ part, offset }) => [part, offset]));
  const ids = fused([byWords.map(({ id }) => id), near.map(({ part }) => part)]);
  const parts = await vectors.parts(ids);
  // The running turn holds the question itself.
  const running = firstSeqOf(context.turnId) ?? Number.MAX_SAFE_INTEGER;
  const hits = ids.flatMap((id) => {
    const part = parts.get(id);
    if (part === undefined || (part.label === context.session && part.place >= running)) return [];
    return [{ part, offset: offsets.get(id) }];
  });
  return { hits, note };
}

/** Where vectors cannot be had, words alone are searched, and the note says why. */
async function nearest(
  query: string,
  scopes: readonly string[],
  { payer, signal }: ToolContext,
  { vectors, spending, embedder: current, log }: SemanticSearchDeps,
) {
  const byWordsOnly = (why: string) => ({ near: [], note: `searched by words only: ${why}` });
  if (payer === undefined) return byWordsOnly('nobody pays for the embedding here');
  try {
    const embedder = current();
    const kept = embedder.isElsewhere ? await spending.refusedElsewhere(payer) : undefined;
    if (kept !== undefined) return byWordsOnly('this conversation stays on the own machines');
    const paid = { embedder, spending, payer };
    const [vector] = await embedPaid([query], 'query', paid, signal);
    if (vector === undefined) return { near: [], note: undefined };
    const { vectors: count, waiting } = await vectors.counts();
    const note = waiting > count ? 'the index is still being made' : undefined;
    return { near: await vectors.nearest(vector, { scopes, limit: CANDIDATES }), note };
  } catch (error) {
    const isKnown = error instanceof EmbeddingError || error instanceof SpendingRefusedError;
    if (!isKnown) throw error;
    log.warn('searched by words only', { error });
    return byWordsOnly(error.message);
  }
}

/** Undefined for a file that is gone, or that this person may not see. */
async function shownHit(
  { part, offset }: Hit,
  query: string,
  context: ToolContext,
  deps: SemanticSearchDeps,
): Promise<Shown | undefined> {
  const { source, label, isForeign } = part;
  const piece = offset === undefined ? undefined : pieceAt(part.text, offset);
  if (source.startsWith(SESSION_SOURCES)) {
    const shown = { ...part, text: piece ?? part.text };
    return { text: hitText(shown, query, context.session), isOwn: !isForeign };
  }
  const text = headOf((piece ?? part.text).trim(), SHOWN_CHARS);
  const where = placeOf(part, offset ?? 0);
  const isFile = source.startsWith(FILE_SOURCES);
  if (!isFile) return { text: `${where}\n${text}`, isOwn: !EXTRACT.test(label) };
  const isOwn = await isOwnDocument(part, context, deps);
  return isOwn === undefined ? undefined : { text: `${where}\n${text}`, isOwn };
}

const pieceAt = (text: string, offset: number) =>
  piecesOf(text).find((piece) => piece.offset === offset)?.text;

/** The file with the line or the section where the text begins. */
function placeOf({ label, place, text }: FoundPart, offset: number): string {
  const name = nameOnLine(label);
  if (!isPlain(label)) {
    return `${name}, section ${place} (read_document with sections: "${place}:${place}")`;
  }
  return `${name}:${place + (text.slice(0, offset).match(/\n/g)?.length ?? 0)}`;
}

/** Of a file that changed since it was indexed, the text shown may be anybody's. */
async function isOwnDocument(
  { source, label }: FoundPart,
  context: ToolContext,
  { memory, own }: SemanticSearchDeps,
): Promise<boolean | undefined> {
  if (reachesOthers(label, context.person.notes)) return undefined;
  const { workspace } = context;
  let content: Buffer;
  try {
    content = await memory.files.read(workspace, label, { maxBytes: MAX_FILE_BYTES });
  } catch (error) {
    if (error instanceof GuardedFileError) return undefined;
    throw error;
  }
  const stamp = (await memory.index.state(source))?.stamp ?? '';
  if (!stamp.endsWith(` ${contentHash(content)}`)) return false;
  if (!isPlain(label) && context.rights.trustsFiles !== true) return false;
  const { dir, base } = posix.parse(label);
  return (
    (await own.named(dir === '' ? '.' : dir, [base], context)) &&
    (await own.isOwn(label, content, context))
  );
}
