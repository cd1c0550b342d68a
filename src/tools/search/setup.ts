// The step of the setup for the web search: the engine that is asked first. It is saved once it answered a
// real search.

import {
  type Asker,
  addressProblem,
  currentConfig,
  type Settings,
  type SetupHost,
  save,
  tryOut,
} from '../../features/setup/asker.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { SearchEngineName } from '../exec/settings.ts';
import { KEY_VARIABLES, webSearchAccess } from './search.ts';
import { createAsking, ENGINES } from './web-search.ts';

const PROOF_TIMEOUT_MS = 30_000;
const PROOF_HITS = 3;
const SECTION = 'tools.web.search';

const LABELS: Readonly<Record<SearchEngineName, string>> = {
  duckduckgo: 'DuckDuckGo',
  wikipedia: 'Wikipedia',
  searxng: 'SearXNG',
  brave: 'Brave',
  tavily: 'Tavily',
  exa: 'Exa',
  serper: 'Serper (Google)',
  google: 'Google Programmable Search',
};

const NAMES: readonly SearchEngineName[] = [
  ...(['brave', 'tavily', 'exa', 'serper', 'google'] as const),
  ...(['searxng', 'duckduckgo', 'wikipedia'] as const),
];

export async function setUpWebSearch(host: SetupHost, asker: Asker): Promise<string> {
  const { search } = (await currentConfig(host)).tools.web;
  const choices = NAMES.map((value) => ({ value, label: LABELS[value], hint: needs(value) }));
  const engine = await asker.choose<SearchEngineName>(
    t`Which search engine is asked first?`,
    choices,
    search.engines[0] ?? 'duckduckgo',
  );
  const access = await accessSettings(host, asker, engine);
  const settings: Settings = {
    ...access,
    'tools.web.enabled': true,
    // The others stay as a fallback.
    [`${SECTION}.engines`]: [engine, ...search.engines.filter((name) => name !== engine)],
  };
  await prove(host, asker, engine, settings);
  await save(host, settings);
  return t`web search by ${LABELS[engine]}`;
}

function needs(engine: SearchEngineName): string {
  if (engine === 'searxng') return t`your own server`;
  return ENGINES[engine].keyed === true ? t`with an API key` : t`needs no key`;
}

async function accessSettings(
  host: SetupHost,
  asker: Asker,
  engine: SearchEngineName,
): Promise<Settings> {
  const { search } = (await currentConfig(host)).tools.web;
  if (engine === 'searxng') {
    const address = await asker.text({
      message: t`Address of your SearXNG, e.g. http://localhost:8888`,
      flag: '--searxng-url',
      ...(search.searxngUrl === '' ? {} : { initial: search.searxngUrl }),
      check: addressProblem,
    });
    return { [`${SECTION}.searxngUrl`]: address };
  }
  if (!isKeyed(engine)) return {};
  const id =
    engine === 'google'
      ? await asker.text({
          message: t`Id of your programmable search engine (cx)`,
          flag: '--google-engine-id',
          ...(search.googleEngineId === '' ? {} : { initial: search.googleEngineId }),
        })
      : undefined;
  const isKnown =
    search[`${engine}ApiKey`] !== '' || (host.env[KEY_VARIABLES[engine]] ?? '') !== '';
  const key = await asker.secret({
    message: isKnown
      ? t`API key of ${LABELS[engine]} (leave empty to keep the one that is known)`
      : t`API key of ${LABELS[engine]}`,
    flag: `--${engine}-key`,
    optional: isKnown,
  });
  return {
    ...(key === '' ? {} : { [`${SECTION}.${engine}ApiKey`]: key }),
    ...(id === undefined ? {} : { [`${SECTION}.googleEngineId`]: id }),
  };
}

const isKeyed = (engine: SearchEngineName): engine is keyof typeof KEY_VARIABLES =>
  Object.hasOwn(KEY_VARIABLES, engine);

/** @throws NanobotError where the engine does not answer, or finds nothing */
async function prove(
  host: SetupHost,
  asker: Asker,
  engine: SearchEngineName,
  settings: Settings,
): Promise<void> {
  const { env, clock } = host;
  const draft = await tryOut(host, settings);
  const ask = createAsking(webSearchAccess(() => draft, env));
  const label = LABELS[engine];
  await asker.during(
    t`Searching with ${label}`,
    async () => {
      const signal = AbortSignal.timeout(PROOF_TIMEOUT_MS);
      const hits = await ask(engine, t`weather`, PROOF_HITS, { clock, signal }).catch(
        (cause: unknown) => {
          const why = cause instanceof Error ? cause.message : t`it failed`;
          throw new NanobotError('search_failed', t`${label} did not answer: ${why}`, { cause });
        },
      );
      if (hits.length > 0) return hits.length;
      throw new NanobotError('search_failed', t`${label} answered, but found nothing.`);
    },
    (count) =>
      ngettext(
        msgid`${label} answered with ${count} result.`,
        `${label} answered with ${count} results.`,
        count,
      ),
  );
}
