// Secrets that stand outside the configuration: found at load, never shown, and what is wrong with
// them said in words.

import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { checkSecrets } from '../../src/cli/doctor/gateway-checks.ts';
import { loadConfig, saveConfig } from '../../src/kernel/config/files/config-file.ts';
import { type Home, homeOf } from '../../src/kernel/config/files/home.ts';
import { LiveConfig } from '../../src/kernel/config/files/live-config.ts';
import { literalSecrets, maskSecrets } from '../../src/kernel/config/secrets.ts';
import { ConfigError } from '../../src/kernel/message/errors.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SECRET = 'sk-the-secret-itself-4711';

let home: Home;

beforeEach(async () => {
  home = homeOf({ NANOBOT_HOME: await temporaryFolder() });
});
async function load(apiKey: unknown, env: Readonly<Record<string, string>> = {}) {
  const path = process.env['PATH'] ?? '';
  await writeFile(home.config, JSON.stringify({ version: 1, providers: { openai: { apiKey } } }));
  return loadConfig(home, { PATH: path, ...env });
}

async function secretFile(text: string, mode = 0o600): Promise<string> {
  const path = join(home.root, 'key');
  await writeFile(path, text);
  await chmod(path, mode);
  return path;
}

async function problemOf(work: Promise<unknown>) {
  const error = await work.catch((caught) => caught);
  if (!(error instanceof ConfigError)) throw new TypeError('it loaded');
  expect(JSON.stringify([error.message, error.problems])).not.toContain(SECRET);
  return error.problems[0];
}

const node = (script: string) => ({ command: [process.execPath, '-e', script] });

describe('a secret by reference', () => {
  test('is found in the environment, in a file and in what a command prints', async () => {
    const keyOf = async (ref: unknown) =>
      (await load(ref, { THE_KEY: SECRET })).config.providers.openai.apiKey;
    expect(await keyOf({ env: 'THE_KEY' })).toBe(SECRET);
    expect(await keyOf({ file: await secretFile(`  ${SECRET}\n`) })).toBe(SECRET);
    expect(await keyOf({ file: 'key' })).toBe(SECRET);
    expect(await keyOf(node(`console.log('${SECRET}')`))).toBe(SECRET);
    expect(await keyOf('$'.concat('{THE_KEY}'))).toBe(SECRET);
    expect(await keyOf(SECRET)).toBe(SECRET);
  });

  test.each([
    ['an unset variable', { env: 'MISSING' }, 'MISSING is not set'],
    ['a missing file', { file: 'nowhere' }, 'nowhere (ENOENT)'],
    ['a folder', { file: '.' }, 'is not a file'],
    ['a command that is not there', { command: ['no-such-program-here'] }, 'ENOENT'],
    [
      'a command that fails',
      node(`console.log('${SECRET}'); console.error('${SECRET}'); process.exit(3)`),
      'ended with exit code 3',
    ],
    ['a command that prints nothing', node('0'), 'is empty'],
    [
      'a command that prints too much',
      node("process.stdout.write('x'.repeat(100_000))"),
      'printed more than 64 kB',
    ],
  ])('says of %s what is wrong and where', async (_what, ref, words) => {
    const problem = await problemOf(load(ref));
    expect(problem).toMatchObject({ path: 'providers.openai.apiKey', line: 1 });
    expect(problem?.problem).toContain(words);
    expect(problem?.problem).not.toContain(SECRET);
    expect(problem?.remedy).not.toBe('');
  });

  test('is refused in a file that other users can read', async () => {
    const file = await secretFile(SECRET, 0o644);
    expect((await problemOf(load({ file })))?.problem).toContain('other users can read');
  });

  test.each([
    [{ env: 'A', file: 'b' }],
    [{ env: 'not a name' }],
    [{ command: [] }],
    [{ command: 'cat key' }],
    [{ command: ['a', 1] }],
    [{ vault: 'x' }],
    [{}],
    [['a']],
    [7],
  ])('in a form that is none is refused: %j', async (ref) => {
    const problem = await problemOf(load(ref));
    expect(problem?.remedy).toContain('{ "env": "NAME" }');
  });

  test('runs its command without a shell and without our environment', async () => {
    const script =
      'console.log(JSON.stringify([process.argv.slice(1), process.env.OTHER_TOKEN, Object.keys(process.env).length < 14]))';
    const ref = { command: [process.execPath, '-e', script, '$(id)', '; id', '`id`'] };
    const { config } = await load(ref, { OTHER_TOKEN: 'not for you' });
    expect(JSON.parse(config.providers.openai.apiKey)).toEqual([
      ['$(id)', '; id', '`id`'],
      null,
      true,
    ]);
  });

  test('stays a reference in the file, whatever else is saved', async () => {
    const ref = { file: await secretFile(SECRET) };
    const { raw } = await load(ref);
    await saveConfig(home, { ...raw, memory: { enabled: false } }, {});
    const text = await readFile(home.config, 'utf8');
    expect(JSON.parse(text).providers.openai.apiKey).toEqual(ref);
    expect(await readFile(home.lastGoodConfig, 'utf8')).not.toContain(SECRET);
  });

  test('is shown as a reference, its value nowhere, and is known to the redactor', async () => {
    const loaded = await load({ env: 'THE_KEY' }, { THE_KEY: SECRET });
    expect(maskSecrets(loaded.raw)).toMatchObject({
      providers: { openai: { apiKey: { env: 'THE_KEY' } } },
    });
    const shown = JSON.stringify(maskSecrets(JSON.parse(JSON.stringify(loaded.config))));
    expect(shown).not.toContain(SECRET);
    expect(new LiveConfig(loaded, {}).redact(`key ${SECRET}.`)).toBe('key [redacted].');
    expect(literalSecrets(loaded.raw)).toEqual([]);
    expect(literalSecrets((await load(SECRET)).raw)).toEqual(['providers.openai.apiKey']);
    expect(literalSecrets((await load('not-needed')).raw)).toEqual([]);
  });

  test('is known to the redactor also after another took its place', async () => {
    const live = new LiveConfig(await load(SECRET), {});
    live.replace(await load('sk-another-one-4712'));
    expect(live.redact(`${SECRET}, sk-another-one-4712`)).toBe('[redacted], [redacted]');
  });

  test('within an argument of a tool server is advised as it can be written there', async () => {
    const mcpServers = { one: { command: 'npx', args: ['--api-key', SECRET] } };
    await writeFile(home.config, JSON.stringify({ version: 1, mcpServers }));
    const found = JSON.stringify(checkSecrets(await loadConfig(home, {})));
    expect(found).toContain('mcpServers.one.args');
    expect(found).toContain('into an environment variable and write $');
    mcpServers.one.args[1] = `$${'{THE_KEY}'}`;
    await writeFile(home.config, JSON.stringify({ version: 1, mcpServers }));
    const loaded = await loadConfig(home, { THE_KEY: SECRET });
    expect(JSON.stringify(checkSecrets(loaded))).not.toContain('mcpServers');
    expect(new LiveConfig(loaded, {}).redact(`key ${SECRET}.`)).toBe('key [redacted].');
  });

  test('counts for a configuration that is checked as a whole', async () => {
    const telegram = { enabled: true, token: { file: await secretFile('no bot token') } };
    await writeFile(home.config, JSON.stringify({ version: 1, channels: { telegram } }));
    const problem = await problemOf(loadConfig(home, {}));
    expect(problem?.problem).toBe('not a valid bot token');
  });
});
