// The command `nanobot support-bundle`: what somebody else needs to find a problem, in one archive, and
// nothing about people. Only what is known to be harmless is taken: numbers, settings with a fixed
// choice, fixed texts of the log. Everything else is replaced by a tag that is the same for the same
// value within this bundle and means nothing outside of it. Nothing is sent.

import { createHmac, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { homedir, release, totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Command } from 'commander';
import { TAR_END, tarEntry } from '../features/backup/places.ts';
import { MIGRATIONS } from '../kernel/bus/store/database.ts';
import { tallyOf } from '../kernel/bus/store/upkeep.ts';
import { configInForce } from '../kernel/config/files/config-file.ts';
import { programVersion } from '../kernel/config/files/home.ts';
import { configKeys } from '../kernel/config/issues.ts';
import { ANY_NAME } from '../kernel/config/json-paths.ts';
import { secretValues } from '../kernel/config/secrets.ts';
import { openStore, storeSetting } from '../kernel/home-state.ts';
import { DEFAULT_ACCOUNT } from '../kernel/message/ids.ts';
import { makeFolder, writeAtomic } from '../lib/files/files.ts';
import { fieldsOf, parseJson } from '../lib/json/json.ts';
import { silentLogger } from '../lib/logger.ts';
import { isContained } from '../lib/process-group.ts';
import { createRedactor } from '../lib/text/redact.ts';
import { t } from '../lib/texts.ts';
import { examine } from './doctor/checks.ts';
import { explainError } from './explain-error.ts';
import type { Terminal } from './terminal.ts';

export function supportBundleCommand(terminal: Terminal): Command {
  return new Command('support-bundle')
    .description(t`write what helps to find a problem into a file, without secrets and texts`)
    .option('--to <file>', t`the file; default: nanobot-support-<date>.tar.gz here`)
    .action(({ to }: { readonly to?: string }) => writeBundle(terminal, to));
}

async function writeBundle(terminal: Terminal, to: string | undefined): Promise<void> {
  const day = new Date(terminal.clock.now()).toISOString().slice(0, 10);
  const path = resolve(to ?? `nanobot-support-${day}.tar.gz`);
  await makeFolder(dirname(path));
  const files = await bundleFiles(terminal);
  const now = terminal.clock.now();
  const entries = files.map(({ name, text }) => tarEntry(name, Buffer.from(text), now));
  await writeAtomic(path, gzipSync(Buffer.concat([...(await Promise.all(entries)), TAR_END])));
  terminal.tell(t`Wrote ${path}:`);
  for (const { name, about, text } of files) {
    terminal.tell(`  ${name.padEnd(NAME_COLUMNS)} ${about} (${Buffer.byteLength(text)} B)`);
  }
  terminal.tell(
    t`It has no message texts, no names, addresses or numbers of people, and no secrets.`,
  );
  terminal.tell(
    t`Look into it, then attach it to the issue or mail that reports the problem. Nothing was sent.`,
  );
}

const NAME_COLUMNS = 16;

type BundleFile = { readonly name: string; readonly about: string; readonly text: string };

async function bundleFiles(machine: Terminal): Promise<readonly BundleFile[]> {
  const { home, env } = machine;
  const { config, raw } = await readConfig(machine);
  const scrub = createScrubber(config === undefined ? [] : secretValues(config), home.root);
  for (const url of [config?.store.url, config?.store.poolUrl]) {
    const database = URL.parse(url ?? '');
    for (const name of [database?.hostname, database?.pathname.slice(1)]) if (name) scrub.tag(name);
  }
  const part = async (name: string, about: string, make: () => unknown): Promise<BundleFile> => {
    let made: unknown;
    try {
      made = await make();
    } catch (error) {
      made = { notRead: explainError(error, env, home).map(scrub.text) };
    }
    const text = typeof made === 'string' ? made : `${JSON.stringify(made, undefined, 2)}\n`;
    return { name, about, text };
  };
  return [
    await part('versions.json', t`versions and the machine`, () => versions(machine)),
    await part('config.json', t`settings; texts in them as tags`, () => shownConfig(raw, scrub)),
    await part('doctor.json', t`what the doctor finds`, async () =>
      (await examine(machine, false)).map(({ fix, text, remedy, check, ...finding }) => ({
        ...finding,
        check: scrub.text(check),
        // Why a tool server failed is in the words of another program.
        text: check === 'tool-server' ? scrub.tag(text) : scrub.text(text),
        fixable: fix !== undefined,
      })),
    ),
    await part('store.json', t`queues, sizes and the last errors`, () =>
      storeFacts(machine, scrub),
    ),
    await part('home.json', t`number and size of files`, () => homeFacts(machine)),
    await part('log.jsonl', t`the end of the log`, () => logTail(machine, scrub)),
  ];
}

async function readConfig({ home, env }: Terminal) {
  const raw = parseJson(await readFile(home.config, 'utf8').catch(() => '{}'));
  const config = await configInForce(home, env, false).then(
    (found) => found.config,
    () => undefined,
  );
  return { raw, config };
}

function versions({ env }: Terminal) {
  const { node, sqlite, v8 } = process.versions;
  return {
    nanobot: programVersion(),
    ...{ node, sqlite, v8, platform: process.platform, arch: process.arch, release: release() },
    contained: isContained(env),
    memoryMb: Math.round(totalmem() / 1_000_000),
    schema: MIGRATIONS.length,
  };
}

// Replaces everything that may be about a person.

type Scrubber = ReturnType<typeof createScrubber>;

const TAG_CHARS = 8;
/** Shorter values are parts of ordinary words. */
const MIN_KNOWN_CHARS = 4;
const KEY_BYTES = 32;
/** Whole words: addresses, names after @, numbers of chats and people, what is quoted. */
const PERSONAL = [
  /[\p{L}\p{N}._%+-]+@[\p{L}\p{N}.-]+/gu,
  /@[\p{L}\p{N}_.-]+/gu,
  /\+?\d[\d\s()-]{3,}\d/g,
  /"[^"]*"|“[^”]*”|'[^']{3,}'/g,
  /(?<=\b(?:sessions|media|workspace|people|groups)\/)[^\s,;:]+/g,
];

function createScrubber(secrets: readonly string[], root: string) {
  // Known to nobody after this run: a telephone number could be found by trying all.
  const key = randomBytes(KEY_BYTES);
  const redact = createRedactor(secrets);
  const known = new Set<string>();
  const tagOf = (value: string) =>
    `#${createHmac('sha256', key).update(value).digest('hex').slice(0, TAG_CHARS)}`;
  return {
    /** A value that nobody outside may see; from then on it is replaced in texts too. */
    tag(value: string): string {
      if (value.length >= MIN_KNOWN_CHARS) known.add(value);
      return tagOf(value);
    },
    /** A text of the program that may quote such values. */
    text(text: string): string {
      let shown = redact(text);
      for (const value of known) shown = shown.replaceAll(value, tagOf);
      shown = shown.replaceAll(root, '~nanobot').replaceAll(homedir(), '~');
      return PERSONAL.reduce((rest, pattern) => rest.replace(pattern, tagOf), shown);
    },
  };
}

const MODEL_SETTING = /models?$/i;
const MODEL_NAME = /^[\w./:-]+$/;

/** Numbers, switches, choices and names of models stay; names that a person gave become tags. */
function shownConfig(raw: unknown, scrub: Scrubber): unknown {
  const keys = new Map(configKeys().map((key) => [key.path, key]));
  function shown(value: unknown, path: string): unknown {
    if (Array.isArray(value)) return value.map((item: unknown) => shown(item, path));
    const fields = fieldsOf(value);
    if (fields !== undefined) {
      return Object.fromEntries(
        Object.entries(fields).map(([name, field]) => {
          const known = path === '' ? name : `${path}.${name}`;
          if (keys.has(known)) return [name, shown(field, known)];
          return [scrub.tag(name), shown(field, `${path}.${ANY_NAME}`)];
        }),
      );
    }
    if (typeof value !== 'string') return value;
    const key = keys.get(path);
    if (key?.secret === true) return value === '' ? '' : '[redacted]';
    const isKnown = key?.choices?.includes(value) === true || value === '';
    const isModel = MODEL_SETTING.test(path) && MODEL_NAME.test(value);
    return isKnown || isModel ? value : scrub.tag(value);
  }
  return shown(raw, '');
}

const MAX_ERRORS = 50;

async function storeFacts({ home, clock }: Terminal, scrub: Scrubber): Promise<unknown> {
  const setting = await storeSetting(home);
  if (setting.engine === 'postgres') {
    const store = await openStore(home, { clock, log: silentLogger, setting });
    const stats = await store.stats().finally(() => store[Symbol.asyncDispose]());
    return { engine: 'postgres', ...stats };
  }
  if (!existsSync(home.state)) return { store: 'none' };
  const { rows, errors, ...facts } = tallyOf(home.state, MAX_ERRORS);
  // The third part is the name of an account.
  const scopes = Object.entries(rows).map(([scope, count]) => {
    const [kind = '', part = '', ...account] = scope.split(':').map(scrub.text);
    const names = account.map((name) => (name === DEFAULT_ACCOUNT ? name : scrub.tag(name)));
    return [[kind, part, ...names].filter(Boolean).join(':'), count] as const;
  });
  return {
    ...facts,
    rows: Object.fromEntries(scopes),
    errors: errors.map(({ reason, ...error }) => ({ ...error, reason: scrub.text(reason ?? '') })),
  };
}

/** Of files, by the folder and the end of their name. */
async function homeFacts({ home }: Terminal): Promise<unknown> {
  const found = new Map<string, { files: number; bytes: number }>();
  const names = await readdir(home.root, { recursive: true, withFileTypes: true });
  for (const entry of names.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name);
    const [, folder = ''] = /^([^/]+)\//.exec(path.slice(home.root.length + 1)) ?? [];
    const kind = FOLDERS.includes(folder) ? folder : folder === '' ? 'home' : 'other';
    const end = /\.(?:jsonl?|db|db-wal|log|md|damaged|txt)$/.exec(entry.name)?.[0] ?? '';
    const sum = found.get(`${kind}/*${end}`) ?? { files: 0, bytes: 0 };
    const { size = 0 } = (await stat(path).catch(() => undefined)) ?? {};
    found.set(`${kind}/*${end}`, { files: sum.files + 1, bytes: sum.bytes + size });
  }
  return Object.fromEntries([...found].sort());
}

const FOLDERS = ['sessions', 'logs', 'media', 'workspace', 'traces', 'eval', 'config'];

const MAX_LOG_LINES = 2000;
/** Fixed texts and words of the program. */
const OWN_FIELDS = ['level', 'msg', 'code', 'kind', 'type', 'signal'];
const ERROR_NAME = /^[A-Za-z]*Error$/;
/** Numbers that may name somebody. */
const ID_FIELD = /(?:id|chat|user|sender|from|to|session|number)$/i;

/** The newest lines, oldest first. */
async function logTail({ home }: Terminal, scrub: Scrubber): Promise<string> {
  const names = (await readdir(home.logs).catch((): string[] => [])).sort().slice(-2);
  const texts = await Promise.all(names.map((name) => readFile(join(home.logs, name), 'utf8')));
  const all = texts
    .join('')
    .split('\n')
    .filter((line) => line !== '');
  const lines = all.slice(-MAX_LOG_LINES);
  return lines.map((line) => `${JSON.stringify(shownLine(parseJson(line), scrub))}\n`).join('');
}

function shownLine(value: unknown, scrub: Scrubber, name = ''): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => shownLine(item, scrub, name));
  const fields = fieldsOf(value);
  if (fields !== undefined) {
    return Object.fromEntries(
      Object.entries(fields).map(([key, field]) => [key, shownLine(field, scrub, key)]),
    );
  }
  if (typeof value === 'number' && ID_FIELD.test(name)) return scrub.tag(String(value));
  if (typeof value !== 'string') return value;
  if (name === 'time' || (name === 'name' && ERROR_NAME.test(value))) return value;
  return OWN_FIELDS.includes(name) ? scrub.text(value) : scrub.tag(value);
}
