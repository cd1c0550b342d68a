// Real Dovecot and Postfix for the system tests, as children of the test on loopback ports, with
// their whole state in a temporary folder. Where Debian's packages are missing the tests are skipped by
// name.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe } from 'vitest';
import { freePorts } from './free-ports.ts';
import {
  dovecotConfig,
  dovecotTokenCheck,
  type MailServerPlan,
  postfixMain,
  postfixMaster,
} from './mail-servers-files.ts';

const START_DEADLINE_MS = 45_000;
const STOP_DEADLINE_MS = 20_000;
const POLL_MS = 50;
const DOVECOT = '/usr/sbin/dovecot';
const POSTFIX = '/usr/sbin/postfix';

export interface MailServers extends AsyncDisposable {
  readonly imapPort: number;
  readonly imapsPort: number;
  readonly smtpPort: number;
  readonly smtpsPort: number;
  /** The same for every mailbox. Postfix refuses recipients that begin with `gone`. */
  readonly password: string;
  /** PEM of the authority behind the servers' certificate. */
  readonly certificate: string;
  /** Folder of one mailbox in Maildir form. */
  maildir(address: string): string;
  /** Resolves when every mail handed to Postfix lies in its mailbox. */
  settle(): Promise<void>;
  /** Kills the IMAP server with every connection and starts it again. */
  restartImap(): Promise<void>;
}

/** Why the servers cannot run here, or undefined where they can. */
export function mailServersAbsent(): string | undefined {
  if (!existsSync(DOVECOT)) return 'Dovecot is not installed';
  if (!existsSync('/usr/lib/dovecot/lmtp')) return 'dovecot-lmtpd is not installed';
  if (!existsSync(POSTFIX)) return 'Postfix is not installed';
  if (process.getuid?.() !== 0) return 'Postfix starts only as root';
  return undefined;
}

/** Tests with mail servers; skipped by name where they cannot run. */
export function describeWithMail(about: string, tests: () => void): void {
  const absent = mailServersAbsent();
  if (absent !== undefined) console.log(`skipped: ${about} (${absent})`);
  describe.skipIf(absent !== undefined)(about, tests);
}

export async function startMailServers(
  options: Pick<MailServerPlan, 'introspectionUrl'> = {},
): Promise<MailServers> {
  const plan = await makePlan(options);
  const { root } = plan;
  let dovecot = await startDovecot(plan);
  const postfix = spawn(POSTFIX, ['-c', join(root, 'postfix'), 'start-fg'], { stdio: 'ignore' });
  await listening(plan.smtpPort, postfix, join(root, 'postfix.log'));
  return {
    imapPort: plan.imapPort,
    imapsPort: plan.imapsPort,
    smtpPort: plan.smtpPort,
    smtpsPort: plan.smtpsPort,
    password: plan.password,
    certificate: await readFile(join(root, 'cert.pem'), 'utf8'),
    maildir: (address) => join(root, 'mail', address),
    settle: () => settle(root),
    async restartImap() {
      await killGroup(dovecot);
      // Processes that are still dying hold the port and the sockets.
      const places = ['lmtp', 'lmtp-in', 'sasl'].map((name) => join(root, 'dovecot', name));
      for (const place of [plan.imapPort, ...places]) {
        while (await answers(place)) await delay(POLL_MS);
      }
      dovecot = await startDovecot(plan);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([stopPostfix(plan, postfix), stop(dovecot)]);
      await rm(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

async function makePlan(
  options: Pick<MailServerPlan, 'introspectionUrl'>,
): Promise<MailServerPlan> {
  // Short, because socket paths are limited to about 100 bytes.
  const root = await mkdtemp('/tmp/nbmail-');
  await chmod(root, 0o755);
  const [imapPort = 0, imapsPort = 0, smtpPort = 0, smtpsPort = 0] = await freePorts(4);
  const plan: MailServerPlan = {
    root,
    imapPort,
    imapsPort,
    smtpPort,
    smtpsPort,
    domains: ['nanobot.test', 'person.test', 'stranger.test'],
    password: 'correct-horse',
    uid: idOf('mail', '-u'),
    gid: idOf('mail', '-g'),
    ...options,
  };
  for (const folder of ['dovecot', 'postfix', 'queue', 'data', 'mail']) {
    await mkdir(join(root, folder));
  }
  await chown(join(root, 'mail'), plan.uid, plan.gid);
  await chown(join(root, 'data'), idOf('postfix', '-u'), idOf('postfix', '-g'));
  await writeFile(join(root, 'dovecot.conf'), dovecotConfig(plan));
  if (plan.introspectionUrl !== undefined) {
    await writeFile(join(root, 'oauth2.conf'), dovecotTokenCheck(plan.introspectionUrl));
  }
  await writeFile(join(root, 'postfix/main.cf'), postfixMain(plan));
  await writeFile(join(root, 'postfix/master.cf'), postfixMaster(plan));
  await writeFile(join(root, 'refused'), '/^gone/ 550 no such person\n');
  makeCertificate(root);
  return plan;
}

const idOf = (user: string, flag: '-u' | '-g') =>
  Number(execFileSync('id', [flag, user], { encoding: 'utf8' }));

function makeCertificate(root: string): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const files = ['-keyout', join(root, 'key.pem'), '-out', join(root, 'cert.pem')];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', '-days', '2', ...key, ...files, ...names], {
    stdio: 'ignore',
  });
}

async function settle(root: string): Promise<void> {
  const deadline = performance.now() + START_DEADLINE_MS;
  while (performance.now() < deadline) {
    if (await isQueueEmpty(root)) return;
    await delay(POLL_MS);
  }
  throw new Error('Postfix still holds mail');
}

/** Looks in the order in which a mail passes, so that none slips by; last for a bounce of it. */
async function isQueueEmpty(root: string): Promise<boolean> {
  for (const name of ['maildrop', 'incoming', 'active', 'incoming', 'active']) {
    if ((await readdir(join(root, 'queue', name))).length > 0) return false;
  }
  return true;
}

async function startDovecot(plan: MailServerPlan): Promise<ChildProcess> {
  const config = join(plan.root, 'dovecot.conf');
  const child = spawn(DOVECOT, ['-F', '-c', config], { stdio: 'ignore', detached: true });
  await listening(plan.imapPort, child, join(plan.root, 'dovecot.log'));
  return child;
}

/** `start-fg` waits for a master process of its own. */
async function stopPostfix(plan: MailServerPlan, child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  const pid = Number(await readFile(join(plan.root, 'queue/pid/master.pid'), 'utf8'));
  process.kill(pid, 'SIGTERM');
  await ended;
}

/** The child leads a process group of its own. */
async function killGroup(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  await ended;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const late = new AbortController();
  await Promise.race([ended, delay(STOP_DEADLINE_MS, undefined, { signal: late.signal })]);
  late.abort();
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
}

/** Waits until the port answers; fails with the server's own log when it does not. */
async function listening(port: number, child: ChildProcess, log: string): Promise<void> {
  const deadline = performance.now() + START_DEADLINE_MS;
  while (performance.now() < deadline && child.exitCode === null) {
    if (await answers(port)) return;
    await delay(POLL_MS);
  }
  const text = await readFile(log, 'utf8').catch(() => 'no log');
  throw new Error(`a mail server did not start: ${text.slice(-2000)}`);
}

/** @param place a port, or the path of a socket */
function answers(place: number | string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = typeof place === 'string' ? connect(place) : connect(place, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
