// `nanobot specialists`: what is declared in a home, and what is wrong with it.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createTerminal } from '../../src/cli/terminal.ts';
import { specialistsCommand } from '../../src/features/subagents/specialists-cli.ts';
import { temporaryHome } from './run-nanobot.ts';

it('lists the specialists of the program and of the home, and says what is wrong with one', async () => {
  await using home = await temporaryHome();
  const said: string[] = [];
  const say = (line: string) => void said.push(line);
  const env = { NANOBOT_HOME: home.path };
  const terminal = { ...createTerminal({ ...process, env }), print: say, note: say };
  const run = (...args: string[]) =>
    specialistsCommand(terminal).parseAsync(args, { from: 'user' });

  await run('validate');
  expect(said.splice(0)).toEqual(['All valid: 4 specialists.']);
  const folder = join(home.path, 'config/agents');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'writer.yml'), 'description: Mine.\nmodel: fast\n');
  await writeFile(
    join(folder, 'gardener.yaml'),
    'description: Plants.\ntools: [water]\nhurry: 1\nslow: 2\n',
  );
  await run('list');
  expect(said).toEqual([
    expect.stringMatching(/^analyst \(main, verbatim; list_dir, read_file/),
    'gardener cannot be used: agents/gardener.yaml: tools: "water" does not fit; list names of tools, like [read_file, web_fetch], those of tool servers as mcp_server_tool; [] for none',
    expect.stringMatching(/^researcher \(main, material; web_search/),
    expect.stringMatching(/^reviewer \(main, verbatim; read_file/),
    'writer (fast, verbatim; no tools): Mine.',
  ]);
  await expect(run('validate')).rejects.toThrow(
    /agents\/gardener\.yaml: tools: "water"[^\n]*\nagents\/gardener\.yaml: hurry: .*\nagents\/gardener\.yaml: slow: /,
  );
});
