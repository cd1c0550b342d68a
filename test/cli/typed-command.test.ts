// Hints name commands as the person must type them.

import { expect, test, vi } from 'vitest';
import { EXAMPLES, runCli } from '../../src/cli/cli.ts';
import { createTerminal } from '../../src/cli/terminal.ts';
import { typedCommands } from '../../src/kernel/typed-command.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { runNanobot, temporaryHome } from './run-nanobot.ts';

const IN_CHECKOUT = { npm_lifecycle_event: 'nanobot' };

test.each([
  ['Start it: nanobot gateway', 'Start it: npm run nanobot -- gateway'],
  ['see "nanobot people list"', 'see "npm run nanobot -- people list"'],
  ['See "nanobot dead list".', 'See "npm run nanobot -- dead list".'],
  ['nanobot: there is no key x', 'nanobot: there is no key x'],
  ['nanobot needs Node 24', 'nanobot needs Node 24'],
  ['/home/nanobot/config.json loads', '/home/nanobot/config.json loads'],
])('%j is typed as %j in a checkout', (hint, typed) => {
  expect(typedCommands(IN_CHECKOUT)(hint)).toBe(typed);
  expect(typedCommands(IN_CHECKOUT, '/src/bin/nanobot.js')(hint)).toBe(typed);
  expect(typedCommands({})(hint)).toBe(hint);
  expect(typedCommands({}, '/usr/local/bin/nanobot')(hint)).toBe(hint);
});

test('a program that was started by its path is named by it', () => {
  const hint = 'Start it: nanobot gateway';
  expect(typedCommands({}, '/src/bin/nanobot.js')(hint)).toBe(
    'Start it: node /src/bin/nanobot.js gateway',
  );
  expect(typedCommands({}, 'C:\\my code\\nanobot.js')(hint)).toBe(
    'Start it: node "C:\\my code\\nanobot.js" gateway',
  );
  const installed = '/opt/versions/1.2.3/node_modules/nanobot-gateway/bin/nanobot.js';
  expect(typedCommands({}, installed)(hint)).toBe(hint);
});

test('a path counts from where it was typed, although npm starts the program elsewhere', async () => {
  await using home = await temporaryHome();
  await home.writeConfig({ version: 1 });
  const env = { ...IN_CHECKOUT, INIT_CWD: home.path };
  const { stdout } = await runNanobot(['config', 'validate', 'config.json'], {
    home: home.path,
    env,
  });
  expect(stdout).toContain('config.json is valid');
});

test('a status asked through npm names commands that work there', async () => {
  await using home = await temporaryHome();
  const installed = await runNanobot(['status'], { home: home.path });
  const checkout = await runNanobot(['status'], { home: home.path, env: IN_CHECKOUT });
  const help = await runNanobot(['help', 'all'], { home: home.path });
  const commands = [...help.stdout.matchAll(/^ {2}([a-z-]+)(?: \[| {2})/gm)].map(
    ([, name]) => name,
  );
  expect(commands.length).toBeGreaterThan(30);
  for (const command of commands.filter((name) => name !== 'help')) {
    expect(typedCommands(IN_CHECKOUT)(`see "nanobot ${command} x"`)).toContain(
      'npm run nanobot -- ',
    );
  }
  expect(installed.stdout).toContain('Start it: nanobot gateway');
  expect(checkout.stdout).toContain('Start it: npm run nanobot -- gateway');
});

test('help shows the options of a command of a command, and refuses what is none', async () => {
  await using home = await temporaryHome();
  const add = await runNanobot(['help', 'cron', 'add'], { home: home.path });
  expect(add.stdout).toContain('Usage: nanobot cron add');
  const { code, stdout, stderr } = await runNanobot(['help', 'sttaus'], { home: home.path });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain("unknown command 'sttaus'");
});

test('every example of the help is a command line that is understood', async () => {
  const terminal = { ...createTerminal(process), env: {}, print: () => {}, note: () => {} };
  const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const failures: string[] = [];
  for (const [command, examples] of Object.entries(EXAMPLES)) {
    for (const example of examples) {
      const line = `${command} ${example}`.replace(/ [<>] \S+$/, '');
      const words = line.match(/"[^"]*"|'[^']*'|\S+/g) ?? [];
      const argv = words.slice(1).map((word) => word.replace(/^["'](.*)["']$/, '$1'));
      // What follows "--" is passed on.
      const own = argv.slice(0, argv.includes('--') ? argv.indexOf('--') : argv.length);
      if ((await runCli([...own, '--help'], terminal)) !== 0) failures.push(line);
    }
  }
  const help = written.mock.calls.map(([text]) => String(text)).join('');
  written.mockRestore();
  expect(failures).toEqual([]);
  expect(help).toContain('nanobot cron add "Tell me the weather" --cron "0 7 * * 1-5"');
});

test('the help shows at most 12 lines at first, and says how to see the rest', async () => {
  await using home = await temporaryHome();
  const { stdout } = await runNanobot(['--help'], { home: home.path });
  expect(stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(12);
  expect(stdout).toMatch(/nanobot onboard .*\n[\s\S]*nanobot help all +list all commands/);
});

test('the help lists every command under a heading, and a slip names the help that fits', async () => {
  const written: string[] = [];
  const keep = (text: unknown) => written.push(String(text)) > 0;
  const spies = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, 'write').mockImplementation(keep),
  );
  const terminal = { ...createTerminal(process), env: {} };
  await runCli(['help', 'all'], terminal);
  await runCli(['cron', 'add', '--frob'], terminal);
  for (const spy of spies) spy.mockRestore();
  const text = written.join('');
  expect(text).toMatch(/Set up:\n +onboard/);
  expect(text).not.toMatch(/^Commands:/m);
  expect(text).toContain('(nanobot cron add --help shows the options)');
});

test('a gateway that npm started names commands that work there, in chats, over HTTP and on the page', async () => {
  await using home = await makeTestHome({
    agents: { defaults: { model: 'openai/no-key' } },
    gateway: { port: 0 },
    coalesce: { quietMs: 0 },
  });
  await using gateway = await home.start({ npm_lifecycle_event: 'start' });
  const { address, credentials } = gateway;
  const headers = { ...credentials, 'content-type': 'application/json' };
  const fetched = async (path: string, body?: object) => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    return (await fetch(`${address}${path}`, { ...init, headers })).text();
  };
  expect(gateway.output()).toContain('npm run nanobot -- link');
  expect(await fetched('/api/status')).toContain('npm run nanobot -- channels login telegram');
  const [folder = ''] = /\/built\/[\w-]+\//.exec(await fetched('/')) ?? [];
  const chunks = [...(await fetched(`${folder}app.js`)).matchAll(/chunk-\w+\.js/g)];
  const scripts = await Promise.all(chunks.map(([name]) => fetched(`${folder}${name}`)));
  expect(scripts.join()).toContain('npm run nanobot -- link');
  expect(await fetched('/api/login', { code: 'x'.repeat(43) })).toContain(
    'npm run nanobot -- link',
  );
  await fetched('/api/web/chats/a/messages', { clientId: 'c1', text: 'hello' });
  const events = await fetch(`${address}/api/web/chats/a/events`, { headers });
  let said = '';
  for await (const part of events.body ?? []) {
    said += Buffer.from(part).toString();
    if (said.includes('config set')) break;
  }
  expect(said).toContain('npm run nanobot -- config set providers.openai.apiKey');
});
