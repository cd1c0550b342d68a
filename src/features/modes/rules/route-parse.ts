// Rules that replace a router whose response is unusable: the first row that matches and whose tool
// is available decides. Each row fills the arguments of its tool; where the sentence does not
// contain them, the row takes a harmless first step or asks.

import { isObject, parseJson } from '../../../lib/json/json.ts';
import { lenientJson, objectsIn, withoutThoughts } from '../../../lib/json/loose-json.ts';
import {
  commandIn,
  contentFor,
  execArgs,
  folderIn,
  pathIn,
  queryIn,
  ROUTE_ACTIONS,
  type RouteDecision,
  replacementFor,
  routeDecisionSchema,
  urlIn,
} from './route-decision.ts';

type FallbackMeans = {
  readonly tools: ReadonlySet<string>;
  /** The main model runs on the person's own machine or network. */
  readonly isLocal: boolean;
};

type Row = (text: string, means: FallbackMeans) => RouteDecision | undefined;

const HACKER_NEWS = 'https://news.ycombinator.com/';
const NEWS_TASK =
  'Find the latest news of today from several sources on the web and report them in ten short lines, each with its source.';

const word = (words: string) =>
  new RegExp(`(?<![\\p{L}\\p{N}_])(?:${words})(?![\\p{L}\\p{N}_])`, 'iu');
/** English, German, French, Spanish, Italian. */
const STUDY = word(
  'research|report|summari[sz]e|summary|analy[sz]e|zusammenfass\\w*|fasse?|analysiere?|recherchiere?|bericht\\w*|résume[rz]?|analyser?|rapport|resum\\w*|analiza\\w*|informe|riassum\\w*|analizza\\w*',
);
const NEWS = word(
  'latest (?:local )?news|neueste[nr]? (?:lokale[nr]? )?nachrichten|dernières nouvelles|últimas noticias|ultime notizie',
);
const LOCAL = word('local|lokal\\w*|locale?s?|locali');
const READ = word(
  'read|show|cat|display|open|print|lies|lese|zeige?|öffne|lis|affiche|montre|ouvre|lee|muestra|muéstrame|abre|leggi|mostra|mostrami|apri',
);
const WRITE =
  /^\s*(?:please\s+|bitte\s+)?(?:write|schreibe?|écris|escribe|scrivi)(?![\p{L}])|write a new|create a (?:new )?file|save (?:[^\n]*? )?(?:to|as)(?![\p{L}])|erstelle? (?:eine )?(?:neue )?datei|speichere?(?![\p{L}])|crée un (?:nouveau )?fichier|enregistre|crea un (?:nuevo )?archivo|guarda|crea un (?:nuovo )?file|salva(?![\p{L}])/iu;
const EDIT = word(
  'edit|modify|change|fix|replace|correct|bearbeite|ändere?|ersetze?|korrigiere?|modifie|remplace|corrige|edita|modifica|cambia|reemplaza|sostituisci|correggi',
);
const LIST =
  /^\s*ls(?:\s|$)|^\s*list\s+\S+\s*$|(?<!\p{L})list\s[^\n]*(?:files?|folders?|director)|^\s*what files|(?<!\p{L})(?:list[ae]?|zeige?|montre|affiche|muestra|muéstrame)(?!\p{L})[^\n]*(?<!\p{L})(?:dateien|ordner|fichiers|archivos)|welche dateien|quels fichiers|qué archivos|(?<!\p{L})show\s(?:me\s)?(?:the|all|my)\s(?:files|folders)|(?:elenca|quali)\s[^\n]*file|mostra(?:mi)?\s(?:i|tutti i|i miei)\sfile(?!\p{L})/iu;
const isListOfPath = (text: string) => /^\s*list\s/i.test(text) && pathIn(text) !== undefined;
const RUN =
  /^\s*(?:please\s+|bitte\s+)?(?:run|execute|cargo|npm|git|make|python3?|führe?|starte|exécute|lance|ejecuta|esegui)(?![\p{L}])|run the|execute the|build the|compile the|run my/iu;
const SEARCH =
  /search (?:the (?:web|internet|net) )?(?:for|about)|look up|find out about|(?<!\p{L})google(?!\p{L})|(?<!\p{L})such(?:e)?(?: im (?:netz|internet|web))? nach|recherchiere?|finde heraus|(?<!\p{L})cherche(?!\p{L})|(?<!\p{L})busca(?:r)?(?!\p{L})|(?<!\p{L})cerca(?!\p{L})/iu;

const tool = (target: string, args: RouteDecision['args'], confidence: number): RouteDecision => ({
  action: 'tool',
  target,
  args,
  confidence,
});
const subagent = (task: string, label: string, confidence: number): RouteDecision => ({
  action: 'subagent',
  target: 'researcher',
  args: { task, label },
  confidence,
});
const asking = (question: string, confidence: number): RouteDecision => ({
  action: 'ask_user',
  target: '',
  args: { question },
  confidence,
});

const ROWS: readonly Row[] = [
  (text, { tools }) =>
    tools.has('spawn') && urlIn(text) !== undefined && STUDY.test(text)
      ? subagent(text, 'research', 0.5)
      : undefined,
  (text, { tools }) => {
    const url = urlIn(text) ?? (/hacker\s?news/i.test(text) ? HACKER_NEWS : undefined);
    return url !== undefined && tools.has('web_fetch')
      ? tool('web_fetch', { url }, 0.4)
      : undefined;
  },
  (text, { tools, isLocal }) =>
    tools.has('spawn') && NEWS.test(text) && (isLocal || LOCAL.test(text))
      ? subagent(NEWS_TASK, 'news', 0.4)
      : undefined,
  (text, { tools }) => {
    const path = READ.test(text) && !WRITE.test(text) ? pathIn(text) : undefined;
    const isFolder = path?.endsWith('/') === true;
    if (path === undefined || isFolder || !tools.has('read_file')) return undefined;
    return tool('read_file', { path }, 0.5);
  },
  (text, { tools }) => {
    if (!tools.has('write_file') || !WRITE.test(text)) return undefined;
    const path = pathIn(text);
    if (path === undefined) return undefined;
    const content = contentFor(path, text);
    if (content === undefined) return asking(`What shall I write to ${path}?`, 0.4);
    return tool('write_file', { path, content }, 0.4);
  },
  (text, { tools }) => {
    const path = EDIT.test(text) ? pathIn(text) : undefined;
    if (path === undefined || !tools.has('edit_file')) return undefined;
    const change = replacementFor(path, text);
    if (change !== undefined) {
      return tool('edit_file', { path, old_text: change.from, new_text: change.to }, 0.4);
    }
    return tools.has('read_file') ? tool('read_file', { path }, 0.4) : undefined;
  },
  (text, { tools }) =>
    tools.has('list_dir') && (LIST.test(text) || isListOfPath(text))
      ? tool('list_dir', { path: folderIn(text) }, 0.4)
      : undefined,
  (text, { tools }) => {
    const command = tools.has('exec') && RUN.test(text) ? commandIn(text) : undefined;
    return command === undefined ? undefined : tool('exec', execArgs(command), 0.3);
  },
  (text, { tools }) =>
    tools.has('web_search') && SEARCH.test(text)
      ? tool('web_search', { query: queryIn(text) }, 0.4)
      : undefined,
];

const UNCLEAR = 'I am not sure what you want. Could you rephrase it?';

/** `text`: the person's message. The last row asks, with the lowest confidence. */
export function fallbackDecision(text: string, means: FallbackMeans): RouteDecision {
  for (const row of ROWS) {
    const decision = row(text, means);
    if (decision !== undefined) return decision;
  }
  return asking(UNCLEAR, 0.2);
}

// Parses a router's decision, from strict to lenient: arguments of a call, a JSON object within a
// text, then forms that small models produce. Anything else is no decision; nothing is guessed.

export type ReadDecision = {
  readonly decision: RouteDecision;
  /** The parser that matched. */
  readonly by: 'call' | 'json' | 'lenient';
};

type Words = {
  /** Arguments of the calls of the decision, JSON. */
  readonly calls: readonly string[];
  readonly text: string;
};

const MAX_CHARS = 8000;
const USUAL_CONFIDENCE = 0.5;
/** Full confidence, because it executes nothing. */
const RESPOND = { action: 'respond', confidence: 1 } as const;
const KEYS = ['action', 'target', 'args', 'confidence'] as const;
const ARG = /([A-Za-z_][\w-]*)\s*[=:]\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^,;\n]+)/g;

export function readDecision({ calls, text }: Words): ReadDecision | undefined {
  const plain = withoutThoughts(text.slice(0, MAX_CHARS));
  const objects = objectsIn(plain);
  return (
    first(calls.map(parseJson), strict, 'call') ??
    first(objects.map(parseJson), strict, 'json') ??
    first([...calls, ...objects].map(lenientJson), chosenKeys, 'lenient') ??
    first([listIn(plain), linesIn(plain)], chosenKeys, 'lenient')
  );
}

function first(
  values: readonly unknown[],
  read: (value: unknown) => RouteDecision | undefined,
  by: ReadDecision['by'],
): ReadDecision | undefined {
  for (const value of values) {
    const decision = read(value);
    if (decision !== undefined) return { decision, by };
  }
  return undefined;
}

/** Some models add this key. */
function strict(value: unknown): RouteDecision | undefined {
  if (!isObject(value)) return undefined;
  const { idempotencyKey: _, ...decision } = value;
  const usual = decision['action'] === RESPOND.action ? RESPOND : {};
  return routeDecisionSchema.safeParse({ ...usual, ...decision }).data;
}

/** Drops unknown keys, and reads numbers and objects written as text. */
function chosenKeys(value: unknown): RouteDecision | undefined {
  if (!isObject(value)) return undefined;
  const known = Object.fromEntries(
    KEYS.flatMap((key) =>
      value[key] === undefined || value[key] === null ? [] : [[key, value[key]]],
    ),
  );
  const action = typeof known['action'] === 'string' ? actionOf(known['action']) : undefined;
  const args = typeof known['args'] === 'string' ? argsOf(known['args']) : known['args'];
  const isBare = action === RESPOND.action && known['confidence'] === undefined;
  const confidence = isBare ? RESPOND.confidence : confidenceOf(known['confidence']);
  const decision = { ...known, action, confidence, ...(args === undefined ? {} : { args }) };
  return routeDecisionSchema.safeParse(decision).data;
}

function actionOf(word: string): string | undefined {
  const plain = word
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '_');
  return ROUTE_ACTIONS.find((action) => action === plain);
}

function confidenceOf(value: unknown): number {
  if (typeof value === 'number') return value > 1 && value <= 100 ? value / 100 : value;
  if (typeof value !== 'string') return USUAL_CONFIDENCE;
  const read = /^\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(value);
  if (read === null) return USUAL_CONFIDENCE;
  const number = Number(read[1]);
  return read[2] === '%' || number > 1 ? number / 100 : number;
}

function argsOf(text: string): Readonly<Record<string, unknown>> {
  const [json] = objectsIn(text).map(lenientJson);
  if (isObject(json)) return json;
  const pairs = [...text.matchAll(ARG)].map(([, key = '', value = '']) => [key, unquoted(value)]);
  return Object.fromEntries(pairs);
}

const unquoted = (text: string) => text.trim().replace(/^(["'])([\s\S]*)\1$/, '$2');

/** `tool, web_fetch, {"url": "..."}, 0.8`, also in braces. */
function listIn(text: string): unknown {
  const list =
    /^\s*[{[(]?\s*"?(\w+)"?\s*,\s*"?([\w.-]*)"?\s*(?:,\s*(\{[\s\S]*\}))?\s*(?:,\s*([\d.]+%?))?\s*[}\])]?\s*$/;
  const read = list.exec(text.trim());
  if (read === null) return undefined;
  const [, action, target, args, confidence] = read;
  return { action, target, args, confidence };
}

/** `action: tool` and so on, one per line or in one line. */
function linesIn(text: string): unknown {
  const said = (key: string) =>
    new RegExp(
      `["'*]*\\b${key}\\b["'*]*\\s*[:=]\\s*["'*]*([\\w.% -]+?)["'*]*\\s*(?:[,;\\n}]|$)`,
      'i',
    ).exec(text)?.[1];
  const action = said('action');
  if (action === undefined) return undefined;
  const args = /["'*]*\bargs?(?:uments)?\b["'*]*\s*[:=]\s*(\{[\s\S]*\}|[^\n]*)/i.exec(text)?.[1];
  return { action, target: said('target'), args, confidence: said('confidence') };
}
