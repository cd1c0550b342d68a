// The update that the page starts: `nanobot update` as a process that outlives the gateway, which it stops and
// starts again. What it says stands in a file, its steps in the record in the home, so that the gateway that
// comes after shows them too.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installedService } from '../../cli/service/manager.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { type Home, PROGRAM } from '../../kernel/config/files/home.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { textIfThere } from '../../lib/files/files.ts';
import { defined } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { findInstallation } from './installation.ts';
import { isAttended, isOver, outcomeText, readRun } from './record.ts';
import { knownUpdate } from './registry.ts';
import type { UpdateView } from './rules/views.ts';

/** From its start until it has written its record. */
const BEGIN_MS = 120_000;
const SHOWN_LINES = 30;
const SHOWN_CHARS = 8000;
/** The last line of the file, written by the shell around the command. */
const ENDED = /^=\d+$/;
/** Of the service, not of a program that it starts. */
const OF_THE_SERVICE =
  /^(?:NANOBOT_SERVICE|NOTIFY_SOCKET|INVOCATION_ID|JOURNAL_STREAM|WATCHDOG_\w+|SYSTEMD_\w+|MEMORY_PRESSURE_\w+)$/;
const VARIABLE = /^[A-Za-z_]\w*$/;

export type StartedUpdates = ReturnType<typeof createStartedUpdates>;

export function createStartedUpdates({ home, env, clock, live }: Kernel) {
  let beganAt = Number.NEGATIVE_INFINITY;
  let isAsked = false;

  async function view(): Promise<UpdateView> {
    const run = await readRun(home);
    const said = await linesOf(home);
    const isBeginning = clock.monotonic() - beganAt < BEGIN_MS && !said.some(isEnd);
    const isRunning = isBeginning || (run !== undefined && !isOver(run) && (await isAttended(run)));
    const isWanted = isAsked || live.config.update.check !== 'never';
    const newer = isWanted ? await knownUpdate(home) : undefined;
    const needsRemedy = newer !== undefined && !isRunning;
    return {
      ...defined({
        newer: newer && { version: newer.version, ...defined({ homepage: newer.homepage }) },
      }),
      ...defined({ remedy: needsRemedy ? await remedyFor(home, env) : undefined }),
      isRunning,
      ...(run === undefined
        ? {}
        : {
            run: {
              ...{ from: run.from, to: run.to, step: run.step, at: run.at },
              ...defined({ outcome: isOver(run) ? outcomeText(run) : undefined }),
            },
          }),
      said: said.filter((line) => !isEnd(line)),
    };
  }

  return {
    view,
    /** The owner asked for the newest version on the page: it is shown, also where nobody wants notices. */
    asked() {
      isAsked = true;
    },
    /** @throws NanobotError where it cannot be started */
    async start(): Promise<void> {
      const remedy = await remedyFor(home, env);
      if (remedy !== undefined) throw new NanobotError('update_by_hand', remedy);
      if ((await view()).isRunning) {
        throw new NanobotError('update_runs', t`An update is under way.`);
      }
      await writeFile(fileOf(home), '', { mode: 0o600 });
      await chmod(fileOf(home), 0o600);
      beganAt = clock.monotonic();
      await startOutside(home, env).catch((error: unknown) => {
        beganAt = Number.NEGATIVE_INFINITY;
        throw error;
      });
    },
  };
}

const isEnd = (line: string) => ENDED.test(line);

/** Why the page cannot update this installation, as what to do instead. */
async function remedyFor(home: Home, env: Environment): Promise<string | undefined> {
  const found = findInstallation(env);
  if (found.kind === 'other') return found.remedy;
  const service = process.platform === 'win32' ? undefined : await installedService(home, env);
  if (service === undefined) {
    return t`The gateway was started by hand. Stop it, then run on its machine: nanobot update`;
  }
  const mayControl = !service.isSystem || process.getuid?.() === 0;
  return mayControl ? undefined : t`Run it on the gateway’s machine, as root: nanobot update`;
}

const fileOf = (home: Home) => join(home.logs, 'update.log');

async function linesOf(home: Home): Promise<readonly string[]> {
  const text = (await textIfThere(fileOf(home))) ?? '';
  const lines = text.slice(-SHOWN_CHARS).split('\n');
  return lines.filter((line) => line !== '').slice(-SHOWN_LINES);
}

/** systemd ends everything in the group of a service with it, so the update gets a unit of its own. */
async function startOutside(home: Home, env: Environment): Promise<void> {
  const service = await installedService(home, env);
  const outside = Object.fromEntries(
    Object.entries({ ...env, NANOBOT_HOME: home.root }).filter(
      ([name]) => VARIABLE.test(name) && !OF_THE_SERVICE.test(name),
    ),
  );
  const command = [
    ...['/bin/sh', '-c', `trap 'echo =$?' EXIT; "$@"`, 'sh'],
    ...[process.execPath, PROGRAM, 'update'],
  ] as const;
  const isSystemd = service?.kind === 'systemd';
  const log = fileOf(home);
  const unit = [
    ...['systemd-run', ...(service?.isSystem === true ? [] : ['--user']), '--quiet', '--collect'],
    ...['--unit', `${service?.name}-update`],
    ...['--property', `StandardOutput=append:${log}`, '--property', `StandardError=append:${log}`],
    ...Object.keys(outside).map((name) => `--setenv=${name}`),
    '--',
  ];
  const [program = '', ...args] = [...(isSystemd ? unit : []), ...command];
  await using file = await open(log, 'a');
  const child = spawn(program, args, {
    env: outside,
    detached: true,
    stdio: ['ignore', file.fd, file.fd],
  });
  child.unref();
  await once(child, 'spawn');
  if (!isSystemd) return;
  const [code] = await once(child, 'exit');
  if (code === 0) return;
  const said = (await linesOf(home)).join(' ');
  throw new NanobotError('update_not_started', t`The update could not be started: ${said}`);
}
