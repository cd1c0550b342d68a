// A PostgreSQL server of its own in a temporary folder, from Debian's programs, under a user that
// is not root.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { freePorts } from './free-ports.ts';

/** Where Debian puts them; undefined where they are not installed. */
const PROGRAMS = globSync('/usr/lib/postgresql/*/bin').find((folder) =>
  existsSync(join(folder, 'initdb')),
);
export const hasPostgres = PROGRAMS !== undefined;

const USER = 'nanobot';
export const PASSWORD = 'correct-horse-battery';
const NOBODY = 65_534;
const START_MS = 30_000;
/** PostgreSQL refuses to run as root. */
const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

export type PostgresServer = AsyncDisposable & {
  readonly folder: string;
  readonly port: number;
  /** A new, empty database; returns its URL. */
  database(): Promise<string>;
  /** Always the same database, without our tables; faster than a new one. */
  emptied(): Promise<string>;
  query(url: string, sql: string): Promise<readonly Record<string, unknown>[]>;
  /** The server may use this folder. */
  own(path: string): void;
  /** Ends at once, like a server that crashed. */
  crash(): Promise<void>;
  /** Stands still, like a server whose disk answers nothing, until `resume`. */
  pause(): void;
  resume(): void;
  /** Ends with all its processes (`kill -9`), like a machine that lost its power. */
  lose(): Promise<void>;
  start(): Promise<void>;
  /** Another server that follows this one; each commit waits until it has it on its disk. */
  standby(): Promise<Standby>;
};

export type Standby = AsyncDisposable &
  Pick<PostgresServer, 'port' | 'crash' | 'lose' | 'pause' | 'resume' | 'start' | 'standby'> & {
    /** From now on it is the primary. */
    promote(): Promise<void>;
  };

/**
 * @param settings with `ssl=on` it has a certificate for localhost, `cert.pem` in its folder
 * @param log a folder that is made for its write-ahead log
 */
export async function startPostgres(
  settings: readonly string[] = [],
  log?: string,
): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'nanobot-pg-'));
  own(folder);
  const data = join(folder, 'data');
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, PASSWORD);
  run(folder, 'initdb', [
    ...['-D', data, '-U', USER, '--pwfile', passwordFile, '-A', 'scram-sha-256'],
    ...['--no-sync', '-E', 'UTF8', '--locale', 'C.UTF-8'],
    ...(log === undefined ? [] : ['--waldir', log, '--wal-segsize', '1']),
  ]);
  if (settings.includes('ssl=on')) makeCertificate(folder);
  const [port = 0] = await freePorts(1);
  const files = ['cert', 'key'].map((name) => `ssl_${name}_file=${join(folder, `${name}.pem`)}`);
  const server = createServer(folder, data, port, [...files, ...settings]);
  let databases = 0;

  await server.start();
  return {
    folder,
    port,
    query,
    own,
    standby: () => follow(folder, port, settings),
    start: server.start,
    async database() {
      databases += 1;
      await query(urlOf(port, 'postgres'), `CREATE DATABASE nanobot${databases}`);
      return urlOf(port, `nanobot${databases}`);
    },
    async emptied() {
      const url = urlOf(port, 'postgres');
      await query(url, 'DROP SCHEMA IF EXISTS nanobot CASCADE');
      return url;
    },
    crash: () => server.end('SIGQUIT'),
    pause: () => server.signal('SIGSTOP'),
    resume: () => server.signal('SIGCONT'),
    lose: server.lose,
    async [Symbol.asyncDispose]() {
      await server.end('SIGINT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A standby of the server on this port. */
async function follow(folder: string, port: number, settings: readonly string[]): Promise<Standby> {
  const [copyPort = 0] = await freePorts(1);
  const copy = join(folder, `standby-${copyPort}`);
  const from = `${urlOf(port, 'postgres')}?application_name=standby`;
  run(folder, 'pg_basebackup', ['-d', from, '-D', copy, '-R', '-c', 'fast', '--no-sync']);
  const follower = createServer(folder, copy, copyPort, settings);
  await follower.start();
  await query(urlOf(port, 'postgres'), `ALTER SYSTEM SET synchronous_standby_names = 'standby'`);
  await query(urlOf(port, 'postgres'), 'SELECT pg_reload_conf()');
  return {
    port: copyPort,
    start: follower.start,
    crash: () => follower.end('SIGQUIT'),
    lose: follower.lose,
    pause: () => follower.signal('SIGSTOP'),
    resume: () => follower.signal('SIGCONT'),
    standby: () => follow(folder, copyPort, settings),
    promote: async () => void (await query(urlOf(copyPort, 'postgres'), 'SELECT pg_promote()')),
    [Symbol.asyncDispose]: () => follower.end('SIGQUIT'),
  };
}

function own(path: string): void {
  if (user.uid !== undefined) chownSync(path, user.uid, user.gid);
}

function run(folder: string, program: string, args: readonly string[]): void {
  execFileSync(join(PROGRAMS ?? '', program), args, { ...user, stdio: 'ignore', cwd: folder });
}

const urlOf = (port: number, name: string) =>
  `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/${name}`;

async function query(url: string, sql: string) {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** A server with this data, which can be ended and started again. */
function createServer(folder: string, data: string, port: number, settings: readonly string[]) {
  const options = ['fsync=off', ...settings].flatMap((setting) => ['-c', setting]);
  let server: ChildProcess | undefined;

  async function start(): Promise<void> {
    server = spawn(
      join(PROGRAMS ?? '', 'postgres'),
      ['-D', data, '-k', folder, '-p', String(port), '-h', '127.0.0.1', ...options],
      { ...user, stdio: 'ignore', cwd: folder },
    );
    for (const until = performance.now() + START_MS; ; ) {
      try {
        await query(urlOf(port, 'postgres'), 'SELECT 1');
        return;
      } catch (error) {
        if (performance.now() > until) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill(signal);
    await ended;
  }

  /** To all its processes, of which none starts another one meanwhile. */
  function signal(name: NodeJS.Signals): void {
    const { pid = 0 } = server ?? {};
    server?.kill('SIGSTOP');
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    for (const child of children.split(' ')) process.kill(Number(child), name);
    server?.kill(name);
  }

  async function lose(): Promise<void> {
    const ended = server && once(server, 'exit');
    signal('SIGKILL');
    await ended;
  }

  return { start, end, lose, signal };
}

function makeCertificate(folder: string): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const files = ['-keyout', 'key.pem', '-out', 'cert.pem'];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  execFileSync('openssl', ['req', '-x509', '-days', '2', ...key, ...files, ...names], {
    ...{ ...user, cwd: folder, stdio: 'ignore' },
  });
}
