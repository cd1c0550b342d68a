// Makes `v1/`, the home of commit 3e7dcfc that v1.test.ts starts today's program on: checks that commit
// out, lets drive-v1.ts bring its program into the states, and takes from the home what is of the
// machine. Run it in a checkout with its history: `npm exec -c 'node test/homes/make-v1.ts'`. The imports
// of drive-v1.ts are paths of that commit.

import { execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const COMMIT = '3e7dcfc';
const HERE = import.meta.dirname;
const OUT = join(HERE, 'v1');
/** Where the home stood, in what is kept of it. */
const HOME_PATH = '/home/nanobot/.nanobot';
const DATABASES = ['state.db', 'index.db'];
/** Who ran it and where; what a start writes anew. */
const LEFT_OUT = [
  ...['gateway.json', 'nanobot.lock', 'nanobot.lock.json', 'nanobot.lock-journal'],
  ...['logs', 'media', 'config.schema.json', '.cache'],
];

const checkout = await mkdtemp(join(tmpdir(), 'nanobot-v1-'));
const archive = execFileSync('git', ['archive', COMMIT], {
  cwd: join(HERE, '../..'),
  maxBuffer: 2 ** 28,
});
execFileSync('tar', ['-x', '-C', checkout], { input: archive });
execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: checkout });
const homes = join(checkout, 'test/homes');
await mkdir(homes);
for (const name of ['drive-v1.ts', 'shifted-date.ts'])
  await cp(join(HERE, name), join(homes, name));

await rm(OUT, { recursive: true, force: true });
await mkdir(OUT);
execFileSync(process.execPath, ['test/homes/drive-v1.ts', OUT], {
  cwd: checkout,
  stdio: 'inherit',
});
await rm(checkout, { recursive: true });

const home = join(OUT, 'home');
const { root } = JSON.parse(await readFile(join(home, 'gateway.json'), 'utf8'));
for (const name of LEFT_OUT) await rm(join(home, name), { recursive: true, force: true });
for (const name of DATABASES) {
  const database = new DatabaseSync(join(home, name));
  database.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}
for (const entry of await readdir(home, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name);
  if (!entry.isFile()) continue;
  const text = await readFile(path, 'latin1');
  if (!text.includes(root)) continue;
  if (DATABASES.includes(entry.name)) throw new Error(`${entry.name} holds the path of the home`);
  await writeFile(path, text.replaceAll(root, HOME_PATH), 'latin1');
}
