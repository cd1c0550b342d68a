// The command `nanobot move`: back up, stop here, restore and start there; and its way back.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { Command } from 'commander';
import { CommandFailure, confirmOrStop, EXIT, type Terminal } from '../../cli/terminal.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { markMoved, readInstance, unmarkMoved } from '../../kernel/instance.ts';
import { systemCode } from '../../lib/files/files.ts';
import { t } from '../../lib/texts.ts';
import { comesTrue } from '../../lib/time/clock.ts';
import { encryptionOf, type KeyFlags, placeOptions, progressOf, work } from './cli.ts';
import type { PlaceOptions } from './places.ts';

const STOP_MS = 330_000;
const START_MS = 60_000;
const POLL_MS = 200;

type MoveFlags = KeyFlags & {
  readonly to?: string;
  readonly undo?: boolean;
  readonly yes?: boolean;
  readonly encrypt?: readonly string[];
  readonly command: string;
};

export function moveCommand(terminal: Terminal): Command {
  return new Command('move')
    .description(t`move this home to another machine: back up, stop, restore and start there`)
    .option('--to <target>', t`user@host or user@host:folder by ssh, or a file *.tar`)
    .option('--undo', t`continue here again`)
    .option('--encrypt <who...>', t`for a file: recipients of age, or the word passphrase`)
    .option('--passphrase-file <file>', t`file with the passphrase`)
    .option('--command <command>', t`how nanobot is called on the other machine`, 'nanobot')
    .option('-y, --yes', t`do not ask for confirmation`)
    .action((flags: MoveFlags) =>
      flags.undo === true ? undo(terminal, flags) : move(terminal, flags),
    );
}

async function move(terminal: Terminal, flags: MoveFlags): Promise<void> {
  const { home } = terminal;
  const { to } = flags;
  if (to === undefined) throw new CommandFailure(EXIT.usage, t`Name the target: --to user@host`);
  if (!existsSync(home.config)) {
    throw new CommandFailure(EXIT.notFound, t`there is nothing to move in ${home.root}`);
  }
  const target = to.endsWith('.tar')
    ? fileTarget(terminal, flags, resolve(to))
    : sshTarget(flags, to, terminal);
  const { moved } = (await readInstance(home)) ?? {};
  // It may have ended before the other side was started.
  if (moved?.isDone === true && moved.to === to) return target.finish();
  // The file may be what an interrupted move has written.
  if (moved === undefined) await target.check();
  await confirmOrStop(
    terminal,
    t`The gateway here stops and does not start again; it continues at ${to}. Move?`,
    flags.yes === true,
  );
  // Before the stop: whatever starts services again finds a home that moved.
  const isRepeat = await markMoved(home, to);
  try {
    await stopGateway(terminal);
    await work((signal) => target.send(signal, isRepeat));
  } catch (error) {
    if (!isRepeat && !(error instanceof ConnectionLost)) await unmarkMoved(home);
    throw error;
  }
  await markMoved(home, to, true);
  await target.finish();
}

type Target = {
  /** Before anything changes. */
  check(): Promise<void>;
  /** Nothing is there if it fails. */
  send(signal: AbortSignal, isRepeat: boolean): Promise<void>;
  finish(): Promise<void>;
};

function fileTarget(terminal: Terminal, flags: MoveFlags, path: string): Target {
  return {
    async check() {
      if (existsSync(path)) throw new CommandFailure(EXIT.usage, t`${path} exists already`);
    },
    send: (signal) => stream(terminal, path, flags, signal),
    async finish() {
      terminal.tell(t`This home is in ${path} and does not start here any more.`);
      terminal.tell(t`Take the file to the other machine and type there:`);
      terminal.tell(
        ['nanobot', ...restoreWords(await isHeld(terminal.home), basename(path))].join(' '),
      );
      terminal.tell('nanobot gateway');
    },
  };
}

const isHeld = async (home: Home) => (await readInstance(home))?.held !== undefined;

/** Accounts that run elsewhere already stay off. */
const restoreWords = (isHeldHere: boolean, from = '-') => [
  ...['backup', 'restore', from],
  ...(isHeldHere ? [] : ['--takes-over']),
];

/** Writes one back-up as a stream. */
async function stream(
  terminal: Terminal,
  to: string,
  { encrypt = [], passphraseFile }: Pick<MoveFlags, 'encrypt' | 'passphraseFile'>,
  signal: AbortSignal,
  output = terminal.output as PlaceOptions['stream'],
): Promise<void> {
  const { openPlace } = await import('./places.ts');
  const { createBackup } = await import('./create.ts');
  const { options } = await placeOptions(terminal, false);
  await using place = await openPlace(to, { ...options, ...(output && { stream: output }) });
  const who = await encryptionOf(terminal, encrypt, place, passphraseFile);
  const onProgress = progressOf(t`Sending`);
  await createBackup({ home: terminal.home, place, encrypt: who, signal, onProgress });
}

/** What ssh says when it is the connection that failed, or a signal that ended the other side. */
const SSH_FAILED = 255;
/** Of a shell: the last one of a command that ended by itself. */
const LAST_OWN_CODE = 128;

const DETACHED = ['</dev/null', '>/dev/null', '2>&1', '&'];

class ConnectionLost extends CommandFailure {}

function sshTarget(flags: MoveFlags, to: string, terminal: Terminal): Target {
  const [, host = '', folder] = /^((?:[\w.-]+@)?[\w.][\w.-]*)(?::(.+))?$/.exec(to) ?? [];
  if (host === '') {
    throw new CommandFailure(EXIT.usage, t`"${to}" is neither user@host nor a file *.tar`);
  }
  const at = folder === undefined ? '' : `NANOBOT_HOME=${quoted(folder)} `;
  const there = (command: string) => `${at}${flags.command} ${command}`;
  const run = async (command: string, input: 'ignore' | 'pipe', signal?: AbortSignal) => {
    const child = spawn('ssh', [host, command], {
      stdio: [input, 'pipe', 'inherit'],
      ...(signal && { signal }),
    });
    const output = (child.stdout?.toArray() ?? Promise.resolve([])).then((parts) =>
      Buffer.concat(parts).toString(),
    );
    const ended = new Promise<number>((settle, fail) => {
      child.once('error', (error) => (signal?.aborted ? settle(SSH_FAILED) : fail(error)));
      child.once('close', (code) => settle(code ?? SSH_FAILED));
    });
    return { child, ended, output };
  };
  const ask = async (command: string) => {
    const { ended, output } = await run(there(command), 'ignore');
    return { code: await ended, said: await output };
  };
  return {
    async check() {
      const { code } = await ask('--version');
      if (code === 0) return;
      throw new CommandFailure(
        EXIT.failure,
        t`"ssh ${host} ${there('--version')}" fails (${code}). Install nanobot there first, or name it with --command.`,
      );
    },
    async send(signal, isRepeat) {
      const words = [
        ...restoreWords(await isHeld(terminal.home)),
        ...(isRepeat ? ['--force'] : []),
      ];
      const { child, ended } = await run(there(words.join(' ')), 'pipe', signal);
      const sent = stream(terminal, '-', {}, signal, child.stdin ?? undefined).then(
        () => void child.stdin?.end(),
        (error: unknown) => {
          // Without its end the stream is refused there.
          child.stdin?.destroy();
          return error;
        },
      );
      const [code, failure] = await Promise.all([ended, sent]);
      if (code === 0) return;
      if (failure !== undefined && systemCode(failure) !== 'EPIPE') throw failure;
      // A part of the stream is refused there; after all of it only a code of its own means "no".
      if (failure === undefined && code > LAST_OWN_CODE) {
        throw new ConnectionLost(
          EXIT.failure,
          t`The connection to ${host} broke, and it is unknown whether the home is there. ` +
            t`Repeat the move, or continue here: nanobot move --undo`,
        );
      }
      throw new CommandFailure(
        EXIT.failure,
        t`${host} did not take the home (${code}); see above.`,
      );
    },
    async finish() {
      const { ended } = await run(
        ['nohup', 'sh', '-c', quoted(there('gateway')), ...DETACHED].join(' '),
        'ignore',
      );
      await ended;
      const limits = { withinMs: START_MS, everyMs: POLL_MS };
      const runs = async () => /"gateway": \{/.test((await ask('status --json')).said);
      terminal.tell(
        (await comesTrue(terminal.clock, limits, runs))
          ? t`Moved: nanobot runs at ${to}, and does not start here any more.`
          : t`Moved to ${to}, but no gateway runs there yet. Start it there: nanobot gateway`,
      );
    },
  };
}

/** For the shell at the other end; a folder below the home of its user stays one. */
function quoted(text: string): string {
  const inHome = text.startsWith('~/');
  const rest = inHome ? text.slice(2) : text;
  return `${inHome ? '"$HOME"/' : ''}'${rest.replaceAll("'", "'\\''")}'`;
}

/** Waits for it to end its turns. */
async function stopGateway({ home, clock }: Terminal): Promise<void> {
  const { findRunningGateway } = await import('../../kernel/home-state.ts');
  const { findHomeHolder } = await import('../../kernel/bus/store/home-lock.ts');
  const running = await findRunningGateway(home);
  if (running !== undefined) process.kill(running.pid, 'SIGTERM');
  const isFree = async () => (await findHomeHolder(home.lock)) === undefined;
  const withinMs = running === undefined ? 0 : STOP_MS;
  if (await comesTrue(clock, { withinMs, everyMs: POLL_MS }, isFree)) return;
  const { holderText } = await import('../../cli/explain-error.ts');
  const holder = (await findHomeHolder(home.lock)) ?? {};
  const message = t`${holderText(holder)} uses this home. Stop it first.`;
  throw new CommandFailure(EXIT.homeHeld, message);
}

async function undo(terminal: Terminal, { yes }: MoveFlags): Promise<void> {
  const { home } = terminal;
  const moved = (await readInstance(home))?.moved;
  if (moved === undefined) return terminal.tell(t`This home did not move.`);
  await confirmOrStop(
    terminal,
    t`What was said at ${moved.to} since ${moved.at} is not here. Is the gateway there stopped for good?`,
    yes === true,
  );
  await unmarkMoved(home);
  terminal.tell(t`This home continues here. Start it: nanobot gateway`);
}
