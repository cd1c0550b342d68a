// The texts for people: each is tagged for translation, is in a catalogue, and is shown translated by the program.

import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { po } from 'gettext-parser';
import { expect, it } from 'vitest';
import { compiled, englishCatalogues } from '../../scripts/texts.ts';
import { allTexts, textsIn } from '../../scripts/user-texts.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ROOT } from './pages.ts';

const execute = promisify(execFile);
const ENGLISH = join(ROOT, 'locales/en');
const texts = allTexts();
const catalogues = readdirSync(ENGLISH).map((name) => readFileSync(join(ENGLISH, name), 'utf8'));

it('finds a text that is not tagged', () => {
  const source = [
    "export const REFUSED = 'Only my owner can do that.';",
    'export const seen = (name: string) => `I have not seen $' + '{name} today.`;',
    'export const SENT = t`It was sent.`;',
    "log.info('the channel has started');",
  ].join('\n');
  const found = textsIn('features/example/index.ts', source);
  expect(found.map(({ line, kind }) => [line, kind])).toEqual([
    [1, 'string'],
    [2, 'template'],
    [3, 'tagged'],
  ]);
});

it('every text for people is tagged for translation', () => {
  const hardCoded = texts.filter(({ kind }) => kind !== 'tagged');
  expect(hardCoded.map(({ path, line, text }) => `src/${path}:${line} ${text}`)).toEqual([]);
});

it('the English catalogues are complete (otherwise: npm run texts)', () => {
  const expected = englishCatalogues(texts.filter(({ kind }) => kind === 'tagged'));
  expect(readdirSync(ENGLISH).sort()).toEqual(
    [...expected.keys()].map((name) => `${name}.po`).sort(),
  );
  for (const [name, text] of expected)
    expect(readFileSync(join(ENGLISH, `${name}.po`), 'utf8'), name).toBe(text);
});

it('the program shows a translation', async () => {
  const folder = await temporaryFolder();
  const translated = catalogues.map((text) => {
    const table = po.parse(text);
    for (const message of Object.values(table.translations[''] ?? {}))
      if (message.msgid !== '')
        message.msgstr = [message.msgid, message.msgid_plural ?? message.msgid]
          .slice(0, message.msgstr.length)
          .map((each) => `<<${each}>>`);
    return po.compile(table).toString();
  });
  const path = join(folder, 'pseudo.json');
  await writeFile(path, compiled(translated));
  const run = async (translation: string) => {
    const { stdout } = await execute(
      process.execPath,
      [join(ROOT, 'bin/nanobot.js'), 'help', 'all'],
      { env: { ...process.env, NANOBOT_HOME: folder, NANOBOT_TRANSLATION: translation } },
    );
    return stdout.split('\n').filter((line) => /^ {2,}[a-z-]+ .* {2,}\S/.test(line));
  };
  const english = await run('');
  const lines = await run(path);
  expect(english.length).toBeGreaterThan(20);
  expect(lines.length).toBe(english.length);
  expect(lines.filter((line) => !line.includes('<<'))).toEqual([]);
});
