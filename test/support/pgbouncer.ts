// PgBouncer of Debian in transaction mode in front of a test's PostgreSQL server.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from './free-ports.ts';

const PROGRAM = '/usr/sbin/pgbouncer';
export const hasPgBouncer = existsSync(PROGRAM);

const NOBODY = 65_534;
const START_MS = 10_000;
/** It refuses to run as root. */
const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

export type PgBouncer = AsyncDisposable & {
  /** The same database through the pooler. */
  urlOf(url: string): string;
};

/** @param size sessions of the server for each database */
export async function startPgBouncer(server: string, size: number): Promise<PgBouncer> {
  const { hostname, port: serverPort, username, password } = new URL(server);
  const folder = mkdtempSync(join(tmpdir(), 'nanobot-pgbouncer-'));
  const [port = 0] = await freePorts(1);
  const users = join(folder, 'users.txt');
  const settings = join(folder, 'pgbouncer.ini');
  writeFileSync(users, `"${username}" "${password}"\n`);
  writeFileSync(
    settings,
    `[databases]
* = host=${hostname} port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${size}
max_client_conn = 100
server_login_retry = 1
`,
  );
  if (user.uid !== undefined) {
    for (const path of [folder, users, settings]) chownSync(path, user.uid, user.gid);
  }
  const pooler = spawn(PROGRAM, ['-q', settings], { ...user, stdio: 'ignore', cwd: folder });
  const ended = once(pooler, 'exit');
  await answering(port);
  return {
    urlOf(url) {
      const pooled = new URL(url);
      pooled.port = String(port);
      return pooled.href;
    },
    async [Symbol.asyncDispose]() {
      pooler.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function answering(port: number): Promise<void> {
  for (const until = performance.now() + START_MS; ; ) {
    const socket = createConnection(port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return;
    } catch (error) {
      if (performance.now() > until) throw error;
    } finally {
      socket.destroy();
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
