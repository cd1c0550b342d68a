// Collects the texts for people in catalogues, one for each feature: locales/en/<name>.po.
//   npm run texts                      writes the English catalogues
//   npm run texts -- compile <folder>  makes <folder>.json of the translated catalogues in it,
//                                      for NANOBOT_TRANSLATION

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type GetTextTranslations, po } from 'gettext-parser';
import { allTexts, type UserText } from './user-texts.ts';

const ENGLISH = join(import.meta.dirname, '../locales/en');
const HEADERS = {
  'Content-Type': 'text/plain; charset=utf-8',
  'Plural-Forms': 'nplurals=2; plural=(n != 1);',
};

type Entry = { readonly text: string; readonly plural?: string; readonly paths: readonly string[] };

/** `features/voice/speak.ts` is in the catalogue voice, `channels/web/…` in channels-web. */
function catalogueOf(path: string): string {
  const [area = '', folder = ''] = path.split('/');
  if (area.endsWith('.ts')) return 'kernel';
  if (area === 'features') return folder;
  return area === 'channels' && !folder.endsWith('.ts') ? `channels-${folder}` : area;
}

/** Translations find a text by it: the names of placeholders are for translators only. */
const keyOf = (text: string) => text.replaceAll(/\$\{ \w+ \}/g, '{}');

/** Name of a catalogue to its file. A text of several catalogues is in the first. */
export function englishCatalogues(texts: readonly UserText[]): ReadonlyMap<string, string> {
  const entries = new Map<string, Entry>();
  for (const { path, text, plural } of texts) {
    const known = entries.get(keyOf(text));
    const paths = [...new Set([...(known?.paths ?? []), path])];
    entries.set(keyOf(text), {
      text,
      ...known,
      ...(plural === undefined ? {} : { plural }),
      paths,
    });
  }
  const catalogues = new Map<string, Entry[]>();
  for (const entry of entries.values()) {
    const name = catalogueOf(entry.paths[0] ?? '');
    catalogues.set(name, [...(catalogues.get(name) ?? []), entry]);
  }
  return new Map([...catalogues].map(([name, all]) => [name, poOf(all)]));
}

function poOf(entries: readonly Entry[]): string {
  const messages = entries.map(({ text, plural, paths }) => [
    text,
    {
      msgid: text,
      ...(plural === undefined ? {} : { msgid_plural: plural }),
      msgstr: plural === undefined ? [''] : ['', ''],
      comments: { reference: paths.join('\n') },
    },
  ]);
  const table: GetTextTranslations = {
    charset: 'utf-8',
    headers: HEADERS,
    translations: { '': Object.fromEntries(messages) },
  };
  return `${po.compile(table, { foldLength: 0 }).toString()}\n`;
}

/** @throws if a file is no catalogue. @returns what NANOBOT_TRANSLATION names, as JSON */
export function compiled(catalogues: readonly string[]): string {
  const parsed = catalogues.map((text) => po.parse(text));
  const messages = parsed
    .flatMap(({ translations }) => Object.values(translations[''] ?? {}))
    .filter(({ msgid, msgstr }) => msgid !== '' && msgstr.every((text) => text !== ''));
  return JSON.stringify({
    headers: { 'plural-forms': parsed[0]?.headers['Plural-Forms'] ?? HEADERS['Plural-Forms'] },
    contexts: { '': Object.fromEntries(messages.map(({ msgid, msgstr }) => [msgid, msgstr])) },
  });
}

function main([command, folder]: readonly string[]): void {
  if (command === 'compile' && folder !== undefined) {
    const files = readdirSync(folder).filter((name) => name.endsWith('.po'));
    writeFileSync(
      `${folder}.json`,
      compiled(files.map((name) => readFileSync(join(folder, name), 'utf8'))),
    );
    console.log(`Wrote ${folder}.json.`);
    return;
  }
  rmSync(ENGLISH, { recursive: true, force: true });
  mkdirSync(ENGLISH, { recursive: true });
  const catalogues = englishCatalogues(allTexts().filter(({ kind }) => kind === 'tagged'));
  for (const [name, text] of catalogues) writeFileSync(join(ENGLISH, `${name}.po`), text);
  console.log(`Wrote ${catalogues.size} catalogues to locales/en.`);
}

if (import.meta.main) main(process.argv.slice(2));
