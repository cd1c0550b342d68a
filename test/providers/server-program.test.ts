// Programs of model servers as real children: a server that answers like Ollama, one that leaves
// itself in the background, and those that cannot be run.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { keepServer } from '../../src/features/local-models/server-program.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { askLocal, isOk } from '../../src/providers/local-servers.ts';
import { freePorts } from '../support/free-ports.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Lists one model, writes down how it was started, and says so when it is told to end. */
const SERVER = `
const fs = require('node:fs');
const [port, note] = process.argv.slice(1);
fs.appendFileSync(note, 'started ' + process.pid + ' ' + JSON.stringify(process.env) + '\\n');
const body = JSON.stringify({ object: 'list', data: [{ id: 'qwen3:8b' }] });
require('node:http')
  .createServer((request, response) =>
    request.url === '/v1/models' ? response.end(body) : response.writeHead(404).end())
  .listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => { fs.appendFileSync(note, 'ended\\n'); process.exit(0); });
`;
/** As \`lms server start\`: the server runs on when its program has ended. */
const IN_BACKGROUND = `
const [port, note] = process.argv.slice(1);
const { spawn } = require('node:child_process');
const child = spawn(process.execPath, ['-e', process.env.OLLAMA_TEST_SERVER, port, note], { detached: true, stdio: 'ignore' });
require('node:fs').writeFileSync(note + '.pid', String(child.pid));
child.unref();
`;
const STOP = `
const [note] = process.argv.slice(1);
process.kill(Number(require('node:fs').readFileSync(note + '.pid', 'utf8')), 'SIGTERM');
`;

async function keep(start: (port: number, note: string) => string[], stop: string[] = []) {
  const [port = 0] = await freePorts(1);
  const folder = await temporaryFolder();
  const note = join(folder, 'note');
  await writeFile(note, '');
  const apiBase = `http://127.0.0.1:${port}/v1`;
  const counts = { started: 0, failed: 0 };
  const stopping = new AbortController();
  const isThere = async (signal: AbortSignal) => {
    const question = { path: '/models', below: 'apiBase', timeoutMs: 20_000 } as const;
    const answer = await askLocal({ apiBase, apiKey: '' }, question, signal);
    return answer !== undefined && isOk(answer);
  };
  const running = keepServer(
    {
      ...{ label: 'Ollama', start: start(port, note), isThere },
      stop: stop.length === 0 ? [] : [...stop, note],
      started: () => {
        counts.started += 1;
      },
    },
    {
      log: {
        ...silentLogger,
        warn: () => {
          counts.failed += 1;
        },
      },
      env: { ...process.env, OLLAMA_TEST_SERVER: SERVER, OLLAMA_API_KEY: 'planted', GATEWAY: 'x' },
      clock: { ...systemClock, sleep: (ms, stop) => systemClock.sleep(Math.min(ms, 50), stop) },
      folder,
    },
    stopping.signal,
  );
  const end = async () => {
    stopping.abort();
    await running;
  };
  onTestFinished(end);
  const written = () => readFile(note, 'utf8');
  return { counts, end, written, isThere: () => isThere(AbortSignal.timeout(45_000)), note };
}

const reaches = (value: () => unknown, expected: unknown) =>
  expect.poll(value, { timeout: 45_000, interval: 20 }).toEqual(expected);

test('a server is started, started again when it is killed, and ended with the gateway', async () => {
  const own = await keep((port, note) => [process.execPath, '-e', SERVER, `${port}`, note]);
  await reaches(() => own.counts.started, 1);
  expect(await own.isThere()).toBe(true);
  const [, pid, environment = ''] = /started (\d+) (.*)/.exec(await own.written()) ?? [];
  expect(environment).toContain('OLLAMA_TEST_SERVER');
  expect(environment).not.toMatch(/planted|GATEWAY/);
  process.kill(Number(pid), 'SIGKILL');
  await reaches(() => own.counts.started, 2);
  await own.end();
  expect(await own.isThere()).toBe(false);
  expect(await own.written()).toMatch(/ended\n$/);
});

test('a server that its program leaves in the background is ended by the other program', async () => {
  const own = await keep(
    (port, note) => [process.execPath, '-e', IN_BACKGROUND, `${port}`, note],
    [process.execPath, '-e', STOP],
  );
  await reaches(() => own.counts.started, 1);
  await own.end();
  await reaches(() => own.isThere(), false);
  expect(existsSync(`${own.note}.pid`)).toBe(true);
});

test('a server that answers already is not started, and not ended', async () => {
  const first = await keep((port, note) => [process.execPath, '-e', SERVER, `${port}`, note]);
  await reaches(() => first.counts.started, 1);
  const stop = new AbortController();
  let asked = 0;
  const second = keepServer(
    {
      ...{ label: 'Ollama', start: ['/no/such/program'], stop: [], started: () => undefined },
      async isThere() {
        asked += 1;
        return first.isThere();
      },
    },
    { log: silentLogger, env: {}, clock: systemClock, folder: '/' },
    stop.signal,
  );
  await reaches(() => asked, 1);
  stop.abort();
  await second;
  expect(await first.isThere()).toBe(true);
});

test('a program that cannot be run or ends at once is tried again later', async () => {
  const missing = await keep(() => ['/no/such/program']);
  await reaches(() => missing.counts.failed > 0, true);
  const failing = await keep(() => [process.execPath, '-e', 'process.exit(3)']);
  await reaches(() => failing.counts.failed > 0, true);
  expect([missing.counts.started, failing.counts.started]).toEqual([0, 0]);
});
