// What `nanobot support-bundle` gives away: nothing about people, no text and no secret, whatever
// stands in the home; and enough to find a problem.

import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { openHome } from '../../src/kernel/config/files/first-run.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { createAfterwork } from '../../src/lib/async.ts';
import { openLogFile } from '../../src/lib/files/files.ts';
import { createLogger, silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { outbound, queued } from '../contract/bus-bench.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runNanobot } from './run-nanobot.ts';

const SECRETS = ['sk-planted-key-AAAA1111', '4242:planted-token-BBBB', 'planted-mail-pass-CCCC'];
const TEXTS = [
  'planted words of a message',
  'planted answer of the agent',
  'planted line of a talk',
];
const PEOPLE = [
  ...['ada.planted@example.org', 'imap.planted-family.example', '+49 151 2345678', '4915123456789'],
  ...['Ada Plantedson', 'plantedaccount', 'plantedserver', '7001234567', 'planted_bot'],
];

test('the bundle has no secret, no text and nobody in it, and says what it has', async () => {
  const root = await temporaryFolder();
  const env = { NANOBOT_HOME: root };
  const home = homeOf(env);
  const mailbox = {
    imapHost: 'imap.planted-family.example',
    imapPort: 9,
    smtpHost: 'imap.planted-family.example',
  };
  await writeFile(
    home.config,
    JSON.stringify({
      version: 1,
      agents: { defaults: { model: 'openai/sim-1' } },
      providers: { openai: { apiKey: SECRETS[0], apiBase: 'http://127.0.0.1:9/v1' } },
      queue: { mode: 'collect' },
      channels: {
        telegram: {
          enabled: true,
          token: SECRETS[1],
          apiRoot: 'http://127.0.0.1:9',
          allowFrom: ['7001234567'],
        },
        whatsapp: { allowFrom: ['+4915123456789'] },
        email: {
          accounts: {
            plantedaccount: {
              ...mailbox,
              ...{ enabled: true, username: 'ada.planted@example.org', password: SECRETS[2] },
            },
          },
        },
      },
      mcpServers: {
        plantedserver: { command: 'plantedserver', args: ['--token', SECRETS[0]] },
      },
    }),
    { mode: 0o600 },
  );
  await openHome(home, env);
  const store = await openEmbeddedStore({
    path: home.state,
    clock: systemClock,
    log: silentLogger,
  });
  const limits = { maxPending: 10, maxPendingPerChat: 10 };
  await store.accept([queued('7001234567', '1', TEXTS[0])], { cursor: undefined, limits });
  await store.queue(outbound('7001234567', 'a', TEXTS[1]));
  await store.scope('channel:email:plantedaccount').set('thread', 'Ada Plantedson');
  await store.scope('people').set('approved:1', JSON.stringify({ name: 'Ada Plantedson' }));
  const [turn] = (await store.claimTurns(() => 1)).claimed;
  if (turn === undefined) throw new Error('no turn');
  const reason = `${PEOPLE[0]} (${PEOPLE[2]}) was refused: "${TEXTS[1]}"`;
  await store.endTurn(turn, { kind: 'dead', reason, outbound: [] });
  await store[Symbol.asyncDispose]();
  await mkdir(home.sessions, { recursive: true });
  await writeFile(
    join(home.sessions, 'telegram.default.7001234567_2026-01-02.jsonl'),
    `{"role":"user","content":"${TEXTS[2]}`,
  );
  using afterwork = createAfterwork(systemClock);
  const { later } = afterwork;
  const file = openLogFile({ folder: home.logs, clock: systemClock, keepDays: () => 14, later });
  const log = createLogger({ level: 'info', destination: file, redact: (text) => text, later });
  const error = new Error(`the server says: ${TEXTS[1]} to ${PEOPLE[0]} with ${SECRETS[0]}`);
  log.warn('message not sent', { channel: 'email@plantedaccount', name: 'Ada Plantedson', error });
  log.warn('somebody wrote', {
    session: 'telegram:7001234567',
    userId: 7_001_234_567,
    tookMs: 1234,
  });
  afterwork.finish();

  const archive = join(root, 'new', 'bundle.tar.gz');
  const { code, stdout } = await runNanobot(['support-bundle', '--to', archive], { home: root });
  expect(code).toBe(0);
  const names = execFileSync('tar', ['-tzf', archive], { encoding: 'utf8' }).trim().split('\n');
  const out = join(root, 'out');
  await mkdir(out);
  execFileSync('tar', ['-xzf', archive, '-C', out]);
  const files = new Map(
    await Promise.all(
      names.map(async (name) => [name, await readFile(join(out, name), 'utf8')] as const),
    ),
  );
  for (const name of names) expect(stdout).toContain(name);
  const said = [stdout.split('\n').slice(1).join('\n'), ...files.values()].join('\n');
  for (const planted of [...SECRETS, ...TEXTS, ...PEOPLE]) {
    expect([planted, said.includes(planted)]).toEqual([planted, false]);
  }
  expect(said.toLowerCase()).not.toContain('planted');

  expect(JSON.parse(files.get('config.json') ?? '')).toMatchObject({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: '[redacted]' } },
    queue: { mode: 'collect' },
    channels: { telegram: { enabled: true, allowFrom: [expect.stringMatching(/^#[0-9a-f]{8}$/)] } },
  });
  expect(JSON.parse(files.get('store.json') ?? '')).toMatchObject({
    integrity: ['ok'],
    inbound: { dead: 1 },
    outbound: { queued: 1 },
    rows: { people: 1 },
    errors: [{ direction: 'inbound', reason: expect.stringContaining('was refused') }],
  });
  const lines = (files.get('log.jsonl') ?? '')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toEqual([
    expect.objectContaining({
      msg: 'message not sent',
      error: expect.objectContaining({ name: 'Error' }),
    }),
    expect.objectContaining({ msg: 'somebody wrote', tookMs: 1234 }),
  ]);
  expect(JSON.parse(files.get('doctor.json') ?? '')).toContainEqual(
    expect.objectContaining({ check: 'telegram', level: 'fail' }),
  );
  expect(JSON.parse(files.get('versions.json') ?? '')).toMatchObject({ schema: 8 });
});

test('what a tool server says of itself is not in the bundle', async () => {
  await using home = await makeTestHome({
    gateway: { port: 0 },
    mcpServers: {
      sad: {
        command: process.execPath,
        args: ['-e', `console.error('${TEXTS[0]}'); process.exit(1)`],
      },
    },
  });
  await using gateway = await home.start();
  const { path } = home;
  await expect
    .poll(async () => (await runNanobot(['doctor'], { home: path })).stdout)
    .toContain(TEXTS[0]);
  const archive = join(path, 'bundle.tar.gz');
  expect((await runNanobot(['support-bundle', '--to', archive], { home: path })).code).toBe(0);
  const said = execFileSync('tar', ['-xzOf', archive], { encoding: 'utf8' });
  expect(said).toContain('"check": "tool-server"');
  expect(said).not.toContain(TEXTS[0]);
  await gateway.stop();
});
