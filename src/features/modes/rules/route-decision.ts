// The decision of a router: its schema, and its check against the tools and specialist of the turn
// before anything runs.

import { z } from 'zod';
import { SPECIALIST } from '../../../agent/rules/context-pack.ts';
import { defined } from '../../../lib/json/json.ts';

export const ROUTE_ACTIONS = [
  'respond',
  'tool',
  'specialist',
  'subagent',
  'ask_user',
  'pipeline',
] as const;

const MAX_TARGET_CHARS = 200;

export const routeDecisionSchema = z.strictObject({
  action: z.enum(ROUTE_ACTIONS),
  target: z.string().max(MAX_TARGET_CHARS).default(''),
  args: z.record(z.string(), z.unknown()).default({}),
  confidence: z.number().min(0).max(1),
});
export type RouteDecision = z.infer<typeof routeDecisionSchema>;

/** A call of a tool or of the specialist, by name. */
export type PlannedCall = {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
};

/** What the turn can use. */
export type RouteMeans = {
  readonly hasSpecialist: boolean;
  /** The person's text, for a plan that does not repeat the task. */
  readonly task: string;
  /** Whether the tool is offered and accepts the arguments. */
  canCall(call: PlannedCall): boolean;
};

export type ReadPlan =
  | { readonly kind: 'respond' }
  | { readonly kind: 'call'; readonly call: PlannedCall }
  /** Asking with choices is not possible here, so the question is sent as the answer. */
  | { readonly kind: 'say'; readonly text: string }
  | { readonly kind: 'invalid'; readonly problem: string };

const GENERAL = 'general';
const MAX_STEPS = 20;

const invalid = (problem: string): ReadPlan => ({ kind: 'invalid', problem });

export function readPlan({ action, target, args }: RouteDecision, means: RouteMeans): ReadPlan {
  switch (action) {
    case 'respond':
      return { kind: 'respond' };
    case 'tool':
      if (target === '') return invalid('no tool is named');
      return possible({ name: target, args }, means);
    case 'specialist': {
      if (!means.hasSpecialist) return invalid('there is no specialist');
      const task = textIn(args, 'task', 'instruction', 'prompt') ?? means.task;
      const domain = target === '' ? (textIn(args, 'domain') ?? GENERAL) : target;
      return { kind: 'call', call: { name: SPECIALIST, args: { domain, task } } };
    }
    case 'subagent':
      return possible({ name: 'spawn', args: subagentArgs(args, means) }, means);
    case 'pipeline':
      return pipeline(args, means);
    case 'ask_user':
      return question(args, means);
  }
}

function possible(call: PlannedCall, means: RouteMeans): ReadPlan {
  if (means.canCall(call)) return { kind: 'call', call };
  return invalid(`${call.name} cannot be called so here`);
}

function subagentArgs(args: RouteDecision['args'], means: RouteMeans) {
  const task = textIn(args, 'task', 'prompt', 'instruction') ?? means.task;
  const named = defined({ profile: textIn(args, 'profile'), label: textIn(args, 'label') });
  return { action: 'spawn', task, ...named };
}

function pipeline(args: RouteDecision['args'], means: RouteMeans): ReadPlan {
  const given = Array.isArray(args['steps']) ? args['steps'].slice(0, MAX_STEPS) : [];
  const steps = given.map((step: unknown) => (typeof step === 'string' ? { prompt: step } : step));
  if (steps.length === 0) return invalid('a pipeline needs steps');
  return possible({ name: 'spawn', args: { action: 'pipeline', steps } }, means);
}

function question(args: RouteDecision['args'], means: RouteMeans): ReadPlan {
  const text = textIn(args, 'question', 'text', 'message', 'prompt');
  if (text === undefined) return invalid('there is no question');
  const choices = Array.isArray(args['choices']) ? { choices: args['choices'] } : {};
  const call = { name: 'ask_user', args: { question: text, ...choices } };
  return means.canCall(call) ? { kind: 'call', call } : { kind: 'say', text };
}

function textIn(args: RouteDecision['args'], ...names: readonly string[]): string | undefined {
  const texts = names.map((name) => args[name]);
  return texts.find((text): text is string => typeof text === 'string' && text.trim() !== '');
}

// Extracts the arguments of a tool from a sentence: an address, a path, a command, the text to
// write or to replace. Returns nothing where the sentence is ambiguous.

const URL_SHAPE = /https?:\/\/[^\s<>"'`|\\^{}]+/i;
const TRAILING = /[.,;:!?)\]}'"”»]+$/;
const FILE_ENDING =
  /\.(?:rs|txt|md|json|jsonl|py|js|mjs|ts|tsx|jsx|toml|ya?ml|csv|tsv|log|html?|css|sh|xml|sql|ini|conf|env|c|h|cpp|go|java|rb|php|pdf|docx|xlsx)$/i;
/** Two words with a slash between them, a date, a fraction, an address. */
const NO_PATH =
  /^(?:(?:and|und|et|y|e|either|und)\/(?:or|oder|ou|o)|(?:he|er|his)\/(?:she|sie|her)|(?:yes|ja|on|pros)\/(?:no|nein|off|cons)|\p{L}\/\p{L}|\d+(?:\/\d+)+|https?:.*|\/+)$/iu;
const FOLDERISH = /^(?:\.{0,2}|~)?\/?[\p{L}\p{N}_.@+-]+(?:\/[\p{L}\p{N}_.@+-]*)*$/u;
const QUOTED =
  /`([^`\n]+)`|"([^"\n]*)"|“([^”\n]*)”|„([^“”\n]*)[“”]|«\s*([^»\n]*?)\s*»|(?<![\p{L}\p{N}])'([^'\n]*)'(?![\p{L}\p{N}])/gu;

export function urlIn(text: string): string | undefined {
  const found = URL_SHAPE.exec(text)?.[0];
  if (found === undefined) return undefined;
  let url = found.replace(TRAILING, '');
  // A closing bracket belongs to the address if the address contains the opening one.
  if (/\([^()]*$/.test(url) && found.startsWith(`${url})`)) url += ')';
  return URL.canParse(url) ? url : undefined;
}

const quotedIn = (text: string) =>
  [...text.matchAll(QUOTED)].map(
    (match) => match.slice(1).find((part) => part !== undefined) ?? '',
  );

/** Has a slash or a known ending, and is not two words with a slash between them. */
function isPath(token: string): boolean {
  if (token === '' || token.length > 1000) return false;
  if (FILE_ENDING.test(token)) return !/[<>|?*]/.test(token);
  return token.includes('/') && !NO_PATH.test(token) && FOLDERISH.test(token);
}

export function pathIn(text: string): string | undefined {
  const rest = text.replace(new RegExp(URL_SHAPE, 'gi'), ' ');
  const named = quotedIn(rest).find((token) => isPath(token.trim()));
  if (named !== undefined) return named.trim();
  return tokensOf(rest).find(isPath);
}

const tokensOf = (text: string) =>
  text.split(/\s+/).map((token) => token.replace(/^[("'`„“«[]+/, '').replace(TRAILING, ''));

const ARTICLE =
  '(?:the|my|this|our|der|die|das|dem|den|meinem|meinen|le|la|les|mon|ma|el|los|mi|il|lo)';
const IN_FOLDER = new RegExp(
  `(?:^|\\s)(?:in|of|under|inside|from|im|unter|von|dans|de|en|di|nella|nel)\\s+(?:${ARTICLE}\\s+)?(?:(?:folder|directory|ordner|verzeichnis|dossier|carpeta|cartella)\\s+)?([\\p{L}\\p{N}_.@+/-]+)`,
  'iu',
);
const NO_FOLDER =
  /^(?:it|here|there|workspace|arbeitsbereich|folder|directory|ordner|verzeichnis|dossier|carpeta|cartella|current|aktuelle[nm]?|there|this|files?|dateien|fichiers|archivos)$/i;

/** `.` where none is named. */
export function folderIn(text: string): string {
  const plain = text.trim().replace(/[.!?]+$/, '');
  const path = pathIn(plain);
  if (path !== undefined) return path;
  const only = /^(?:ls|list)\s+(?:-\w+\s+)*(\S+)$/i.exec(plain)?.[1];
  const named = only ?? IN_FOLDER.exec(plain)?.[1];
  return named === undefined || NO_FOLDER.test(named) ? '.' : named.replace(TRAILING, '');
}

const PROGRAMS = new Set(
  (
    'cargo npm npx yarn pnpm git make cmake python python3 pip node deno bun go rustc ls cat grep find echo ' +
    'pwd date df du ps docker kubectl curl wget tar sh bash java javac mvn gradle ruby perl php pytest jest ' +
    'vitest eslint tsc uname whoami head tail wc sort tree which uptime free hostname'
  ).split(' '),
);
const RUN_WORDS =
  /^(?:please\s+|bitte\s+|could you\s+|can you\s+)?(?:run|execute|führe?|starte|exécute|lance|ejecuta|corre|esegui)\s+(?:(?:the|den|die|la|le|el|il)\s+)?(?:(?:command|script|program|befehl|kommando|skript|commande|comando)\s*:?\s+)?/iu;
const AFTERWARDS =
  /\s*(?:,?\s*(?:please|bitte|for me|aus|s'il te plaît|por favor|per favore))*[.!?]*$/iu;
const NO_ARGUMENT =
  /^(?:me|a|an|the|sure|it|up|my|some|us|your?|is|are|was|has|can|dir|mir|sich|das|ist|sind|est|es|è|kann|peut|puede|può)$/iu;

/** The command that a sentence asks to run; undefined where it names none. */
export function commandIn(text: string): string | undefined {
  const quoted = /`([^`\n]+)`/.exec(text)?.[1]?.trim();
  if (quoted !== undefined && quoted !== '') return quoted;
  const command = text.trim().replace(RUN_WORDS, '').replace(AFTERWARDS, '').trim();
  const [program = '', second = ''] = command.split(/\s+/, 2);
  const isNamed = PROGRAMS.has(program.toLowerCase()) && !NO_ARGUMENT.test(second);
  const isFile = /^\.{0,2}\/\S+$/.test(program) || /^\S+\.(?:sh|py)$/.test(program);
  return isNamed || isFile ? command : undefined;
}

/** `argv`, or a `script` for syntax that needs a shell. */
export function execArgs(command: string): Readonly<Record<string, unknown>> {
  if (/[|&;<>$()*?~\n\\]/.test(command)) return { script: command };
  const words = [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)];
  return { argv: words.map(([, double, single, plain]) => double ?? single ?? plain ?? '') };
}

const CONTENT_BEHIND =
  /(?:\bwith|\bcontaining|\bmit|\bavec|\bcon|\bque diga|\bsaying)\s+(?:(?:the|dem|den|le|el|il)\s+)?(?:(?:text|contents?|words?|inhalt|contenu|texte|contenido|contenuto)\b\s*)?:?\s*(\S[\s\S]*)$/iu;
const CONTENT_BEFORE =
  /^(?:please\s+|bitte\s+)?(?:write|save|put|schreibe?|speichere?|écris|enregistre|escribe|guarda|scrivi|salva)\s+(\S[\s\S]*?)\s+(?:to|into|in|as|nach|unter|dans|en|su|nel|come)\s*$/iu;
const COMPOSED =
  /^(?:an?|the|this|that|it|my|some|something|eine?n?|das|es|die|den|un|une|le|la|ce|el|lo|ese|esto|il|qualcosa)\b/iu;

/**
 * The text that a sentence asks to write to a file; undefined where it has to be composed first.
 */
export function contentFor(path: string, text: string): string | undefined {
  const quoted = quotedIn(text).filter((part) => part !== path && !/^`/.test(part));
  if (quoted.length === 1 && quoted[0] !== '') return quoted[0];
  const at = text.indexOf(path);
  const behind = text.slice(at + path.length).replace(/^["'`”»]/, '');
  const colon = /^\s*:\s*(\S[\s\S]*)$/.exec(behind)?.[1] ?? CONTENT_BEHIND.exec(behind)?.[1];
  if (colon !== undefined) return colon;
  const before = text
    .slice(0, at)
    .replace(/["'`„“«]$/, '')
    .replace(
      /(?:the|a|die|eine|le|un|el|il)?\s*(?:new|neue)?\s*(?:file|datei|fichier|archivo)\s*$/iu,
      '',
    );
  const said = CONTENT_BEFORE.exec(before)?.[1];
  return said === undefined || COMPOSED.test(said) ? undefined : said;
}

const REPLACEMENT =
  /(?:replace|change|edit|fix|correct|ersetze?|ändere?|korrigiere?|remplace|change|corrige|reemplaza|cambia|sostituisci|correggi)\s+(\S[\s\S]*?)\s+(?:with|to|by|into|durch|zu|in|par|en|por|con)\s+(\S[\s\S]*?)\s+(?:in|im|of|dans|de|en|di|nel)\s*$/iu;

/** The passage and its replacement; undefined where the sentence does not name both. */
export function replacementFor(path: string, text: string) {
  const quoted = quotedIn(text).filter((part) => part !== path);
  const [from, to, more] = quoted;
  if (from !== undefined && from !== '' && to !== undefined && more === undefined)
    return { from, to };
  if (quoted.length > 0) return undefined;
  const before = text
    .slice(0, text.indexOf(path))
    .replace(/(?:the|die|der|le|el|il)?\s*(?:file|datei|fichier|archivo)?\s*$/iu, '');
  const [, old, next] = REPLACEMENT.exec(before) ?? [];
  return old === undefined || next === undefined || COMPOSED.test(old)
    ? undefined
    : { from: old, to: next };
}

const SEARCH_WORDS =
  /^[\s\S]*?(?:search(?:\s+(?:the\s+)?(?:web|internet|net|online))?\s+(?:for|about)|look\s+up|find\s+out\s+about|google(?:\s+(?:for|mal))?|(?:suche?|recherchiere?)(?:\s+(?:im\s+(?:netz|internet|web)))?(?:\s+(?:nach|zu|mal))?|finde\s+heraus,?|(?:cherche|recherche)(?:\s+sur\s+(?:internet|le\s+web))?|busca(?:r)?(?:\s+en\s+(?:internet|la\s+web))?|cerca(?:\s+(?:su\s+internet|sul\s+web|in\s+rete))?)\s+/iu;

/** The search terms, without the words that ask for the search. */
export function queryIn(text: string): string {
  const query = text.replace(SEARCH_WORDS, '').replace(AFTERWARDS, '').trim();
  return query === '' ? text.trim() : query;
}
