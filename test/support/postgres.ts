// A PostgreSQL server of its own in a temporary folder, from Debian's programs, under a user that
// is not root.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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
  /** Ends at once, like a server that crashed. */
  crash(): Promise<void>;
  start(): Promise<void>;
};

/** @param settings with `ssl=on` it has a certificate for localhost, `cert.pem` in its folder */
export async function startPostgres(settings: readonly string[] = []): Promise<PostgresServer> {
  const programs = PROGRAMS ?? '';
  const folder = mkdtempSync(join(tmpdir(), 'nanobot-pg-'));
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, PASSWORD);
  execFileSync(
    join(programs, 'initdb'),
    [
      ...['-D', data, '-U', USER, '--pwfile', passwordFile, '-A', 'scram-sha-256'],
      ...['--no-sync', '-E', 'UTF8', '--locale', 'C.UTF-8'],
    ],
    { ...user, stdio: 'ignore', cwd: folder },
  );
  if (settings.includes('ssl=on')) makeCertificate(folder);
  const [port = 0] = await freePorts(1);
  const urlOf = (name: string) => `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/${name}`;
  const files = ['cert', 'key'].map((name) => `ssl_${name}_file=${join(folder, `${name}.pem`)}`);
  const options = ['fsync=off', ...files, ...settings].flatMap((setting) => ['-c', setting]);
  let server: ChildProcess | undefined;
  let databases = 0;

  async function start(): Promise<void> {
    server = spawn(
      join(programs, 'postgres'),
      ['-D', data, '-k', folder, '-p', String(port), '-h', '127.0.0.1', ...options],
      { ...user, stdio: 'ignore', cwd: folder },
    );
    for (const until = performance.now() + START_MS; ; ) {
      try {
        await query(urlOf('postgres'), 'SELECT 1');
        return;
      } catch (error) {
        if (performance.now() > until) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (server === undefined || server.exitCode !== null) return;
    const ended = once(server, 'exit');
    server.kill(signal);
    await ended;
  }

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

  await start();
  return {
    folder,
    port,
    query,
    start,
    async database() {
      databases += 1;
      await query(urlOf('postgres'), `CREATE DATABASE nanobot${databases}`);
      return urlOf(`nanobot${databases}`);
    },
    async emptied() {
      const url = urlOf('postgres');
      await query(url, 'DROP SCHEMA IF EXISTS nanobot CASCADE');
      return url;
    },
    crash: () => end('SIGQUIT'),
    async [Symbol.asyncDispose]() {
      await end('SIGINT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function makeCertificate(folder: string): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const files = ['-keyout', 'key.pem', '-out', 'cert.pem'];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  execFileSync('openssl', ['req', '-x509', '-days', '2', ...key, ...files, ...names], {
    ...{ ...user, cwd: folder, stdio: 'ignore' },
  });
}
