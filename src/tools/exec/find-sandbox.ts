// Finds a working sandbox: the system's own, docker or podman as configured, each verified by a
// trial run; at start and again after a configuration change.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { systemCode } from '../../lib/files/files.ts';
import { isContained } from '../../lib/process-group.ts';
import { t } from '../../lib/texts.ts';
import { systemClock } from '../../lib/time/clock.ts';
import type { ContainerEngine, EngineName } from './container.ts';
import {
  type BubblewrapFeatures,
  createBubblewrap,
  createSeatbelt,
  trialArgv,
} from './os-sandboxes.ts';
import { runConfined } from './run-confined.ts';
import { createUnconfined, NO_SHIELDS, type Sandbox } from './sandbox.ts';
import { inScriptFolder } from './scripts.ts';
import type { ExecConfig } from './settings.ts';

/** Loaded only if programs run in containers. */
const containers = () => import('./container.ts');

const ASK_MS = 10_000;
const CONTAINER_TRIAL_MS = 60_000;
const MEGABYTE = 1_000_000;
/** Podman first: usually it needs no administrator. */
const ENGINES: readonly EngineName[] = ['podman', 'docker'];
const MAX_WORDS = 300;
/** How docker and podman report a limit that they do not enforce. */
const LIMIT_LEFT_OUT = /\b(?:discarded|ignored)\b/i;

async function findContainer(system: SandboxSystem, wish: SandboxWish): Promise<FoundSandbox> {
  const { image, engine } = wish.container;
  if (image === '') {
    const remedy = t`Name an image that is there in tools.exec.container.image.`;
    return missing(t`no image for containers is named`, remedy);
  }
  const wanted = engine === 'auto' ? ENGINES : [engine];
  const reasons: string[] = [];
  for (const name of wanted) {
    const tried = await tryEngine(name, system, wish).catch((error: unknown) =>
      failureOf(name, error),
    );
    if (typeof tried !== 'string') return tried;
    reasons.push(tried);
  }
  const remedy = t`Start ${wanted.join(' or ')}, for the user of nanobot, and fetch the image (${wanted[0]} pull ${image}).`;
  return missing(reasons.join('; '), remedy);
}

/** The problem as text if the engine cannot be used. */
async function tryEngine(
  name: EngineName,
  { env, path }: SandboxSystem,
  wish: SandboxWish,
): Promise<FoundSandbox | string> {
  const { ask, createContainer, engineEnvironment } = await containers();
  const { image: imageName, cpus } = wish.container;
  const bare = { program: name, env: engineEnvironment(env, path) };
  const isRootless = await rootless(name, bare);
  const inspect = ['image', 'inspect', '--format', '{{.Id}}', imageName];
  const id = await ask(bare, inspect, ASK_MS).catch(() => '');
  if (!/^(sha256:)?[0-9a-f]{64}$/.test(id)) return t`${name} has no image ${imageName}`;
  const engine = { ...bare, name, flags: flagsOf(name, isRootless) };
  const user = userOf(name, isRootless);
  const choice = { engine, image: id, imageName, cpus, user, owner: wish.owner };
  const sandbox = createContainer(choice);
  const fault = await trial(sandbox);
  return fault === undefined ? { ...found(sandbox), engine } : `${name}: ${fault}`;
}

/** @throws if it does not answer */
async function rootless(name: EngineName, engine: Pick<ContainerEngine, 'program' | 'env'>) {
  const asked = name === 'podman' ? '{{.Host.Security.Rootless}}' : '{{.SecurityOptions}}';
  const { ask } = await containers();
  const answer = await ask(engine, ['info', '--format', asked], ASK_MS);
  return name === 'podman' ? answer === 'true' : answer.includes('name=rootless');
}

function flagsOf(name: EngineName, isRootless: boolean): readonly string[] {
  if (name === 'docker') return [];
  // By default podman passes the proxy's address on and mounts writable folders without a size
  // limit.
  const own = ['--http-proxy=false', '--read-only-tmpfs=false'];
  return isRootless ? [...own, '--userns=keep-id'] : own;
}

/**
 * The uid by which written files belong to the gateway's user, who is root in a rootless docker.
 */
function userOf(name: EngineName, isRootless: boolean): string {
  if (name === 'docker' && isRootless) return '0:0';
  return `${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`;
}

const TRIAL_LIMITS = {
  timeoutMs: CONTAINER_TRIAL_MS,
  memoryBytes: 256 * MEGABYTE,
  maxProcesses: 32,
  cpuSeconds: 30,
  fileBytes: MEGABYTE,
  diskBytes: MEGABYTE,
  outputBytes: 1000,
};

/** Like a run, in a folder of its own; the problem, or undefined. */
function trial(sandbox: Sandbox): Promise<string | undefined> {
  return inScriptFolder(async (folder) => {
    const workspace = join(folder, 'workspace');
    const scripts = join(folder, 'scripts');
    await mkdir(workspace, { mode: 0o700 });
    await mkdir(scripts, { mode: 0o700 });
    await writeFile(join(workspace, 'given'), folder, { mode: 0o600 });
    const confinement = {
      ...{ workspace, isWritable: true, cwd: workspace, shields: NO_SHIELDS, extraReadOnly: [] },
      ...{ forbidden: [], scriptFolder: scripts, replaced: [], hasNetwork: false },
      scratchBytes: MEGABYTE,
    };
    const command = ['sh', '-c', 'cat given > taken'] as const;
    const work = { sandbox, command, confinement, env: { HOME: workspace }, limits: TRIAL_LIMITS };
    const report = await runConfined(work, systemClock, new AbortController().signal);
    const taken = await readFile(join(workspace, 'taken'), 'utf8').catch(() => '');
    const isFine = report.ending.kind === 'exit' && report.ending.code === 0 && taken === folder;
    const words = report.errors.head.toString('utf8').trim().slice(0, MAX_WORDS);
    if (isFine && !LIMIT_LEFT_OUT.test(words)) return undefined;
    return words || t`a folder of this machine is not the same one inside`;
  });
}

function failureOf(name: EngineName, error: unknown): string {
  return systemCode(error) === 'ENOENT' ? t`${name} is not installed` : t`${name} does not answer`;
}

// Finds the sandbox that the configuration asks for and this system has, and tests it: inside many
// containers the kernel creates no namespaces.

export type FoundSandbox =
  | {
      readonly kind: 'found';
      readonly sandbox: Sandbox;
      /** Why the preceding ones are not in use. */
      readonly passedOver: readonly string[];
      readonly engine?: ContainerEngine;
    }
  | { readonly kind: 'missing'; readonly reason: string; readonly remedy: string };

export type SandboxSystem = {
  readonly platform: NodeJS.Platform;
  /** Of the program that runs the gateway. */
  readonly nodePath: string;
  readonly path: string;
  readonly env: Environment;
  /** The gateway itself runs in a container. */
  readonly isContained: boolean;
};

type SandboxWish = Pick<ExecConfig, 'sandbox' | 'container'> & {
  /** The owner of the runs, in letters and digits. */
  readonly owner: string;
};

const run = promisify(execFile);
const TRIAL_MS = 10_000;
const SEATBELT = '/usr/bin/sandbox-exec';
const ELSE =
  t`or name an image for containers in tools.exec.container.image, or set tools.exec.sandbox to ` +
  t`"off", where programs see all that nanobot sees`;
const IN_CONTAINER = t`Allow them in this container (docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined, and apparmor=unconfined where that is on)`;
const ON_MACHINE = t`Allow user namespaces (kernel.apparmor_restrict_unprivileged_userns=0, kernel.unprivileged_userns_clone=1)`;

export const thisSystem = (env: Environment): SandboxSystem => ({
  platform: process.platform,
  nodePath: process.execPath,
  path: process.platform === 'darwin' ? `${USUAL_PATH}:/opt/homebrew/bin` : USUAL_PATH,
  env,
  isContained: isContained(env),
});

const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin';

export async function findSandbox(system: SandboxSystem, wish: SandboxWish): Promise<FoundSandbox> {
  if (wish.sandbox === 'off') return found(createUnconfined(system.nodePath));
  const kinds = wish.sandbox === 'auto' ? kindsOf(system, wish) : [wish.sandbox];
  const missed: Missing[] = [];
  for (const kind of kinds) {
    const answer = await findKind(kind, system, wish);
    const passedOver = missed.map(({ reason }) => reason);
    if (answer.kind === 'found') return { ...answer, passedOver };
    missed.push(answer);
  }
  const [first] = missed;
  if (first === undefined) {
    return missing(
      t`there is no sandbox for this system`,
      t`Run nanobot on Linux or macOS, ${ELSE}.`,
    );
  }
  const reason = missed.map((each) => each.reason).join('; ');
  return missing(reason, missed.map((each) => each.remedy).join(' '));
}

type Kind = 'bubblewrap' | 'seatbelt' | 'container';
type Missing = Extract<FoundSandbox, { readonly kind: 'missing' }>;

/** The system's own sandboxes, then containers if an image is configured. */
function kindsOf({ platform }: SandboxSystem, { container }: SandboxWish): readonly Kind[] {
  const own: readonly Kind[] =
    platform === 'linux' ? ['bubblewrap'] : platform === 'darwin' ? ['seatbelt'] : [];
  return container.image === '' ? own : [...own, 'container'];
}

async function findKind(
  kind: Kind,
  system: SandboxSystem,
  wish: SandboxWish,
): Promise<FoundSandbox> {
  const { platform, nodePath } = system;
  if (kind === 'bubblewrap') {
    return platform === 'linux' ? findBubblewrap(system) : elsewhere('bubblewrap', 'Linux');
  }
  if (kind === 'seatbelt') {
    const isHere = platform === 'darwin' && existsSync(SEATBELT);
    return isHere ? found(createSeatbelt(nodePath)) : elsewhere('sandbox-exec', 'macOS');
  }
  return findContainer(system, wish);
}

const elsewhere = (name: string, system: string) =>
  missing(t`${name} is of ${system} only`, t`Set tools.exec.sandbox to "auto".`);

async function findBubblewrap(system: SandboxSystem): Promise<FoundSandbox> {
  const { nodePath, path, isContained } = system;
  const options = { env: { PATH: path }, timeout: TRIAL_MS, cwd: '/' };
  const help = await run('bwrap', ['--help'], options).catch(() => undefined);
  if (help === undefined) {
    const install = t`Install bubblewrap (Debian, Ubuntu: apt install bubblewrap)`;
    return missing(t`bubblewrap is not installed`, `${install}, ${ELSE}.`);
  }
  const text = help.stdout + help.stderr;
  const features: BubblewrapFeatures = {
    canSizeScratch: text.includes('--size '),
    canForbidUserNamespaces: text.includes('--disable-userns'),
  };
  const [program, ...args] = trialArgv(features);
  const works = await run(program, args, options).then(...YES_OR_NO);
  if (works) return found(createBubblewrap(features, nodePath));
  return isContained
    ? missing(
        t`this container does not allow bubblewrap to create namespaces`,
        `${IN_CONTAINER}, ${ELSE}.`,
      )
    : missing(t`bubblewrap cannot create namespaces here`, `${ON_MACHINE}, ${ELSE}.`);
}

const YES_OR_NO = [() => true, () => false] as const;

const found = (sandbox: Sandbox) => ({ kind: 'found', sandbox, passedOver: [] }) as const;

const missing = (reason: string, remedy: string): Missing => ({ kind: 'missing', reason, remedy });

// The current sandbox: searched in parallel with the start, and again when the configuration asks
// for another. Until it is known there is none.

type KnownSandboxDeps = Pick<Kernel, 'log' | 'clock'> & {
  readonly system: SandboxSystem;
  /** The owner of the runs, in letters and digits. */
  readonly owner: string;
  config(): ExecConfig;
};

const LOOK_AGAIN_MS = 60_000;

const NOT_YET: FoundSandbox = {
  kind: 'missing',
  reason: t`the sandbox is still being looked for`,
  remedy: t`Try again in a moment.`,
};

/** What is known now; the first call starts the search. */
export function createKnownSandbox(deps: KnownSandboxDeps): () => FoundSandbox {
  const { system, log, clock, owner, config } = deps;
  let lookedFor: string | undefined;
  /** By the monotonic clock; an engine may start later than the gateway. */
  let lookAgainAt = Number.POSITIVE_INFINITY;
  let known = NOT_YET;
  async function look(wish: ExecConfig, key: string): Promise<void> {
    const answer = await findSandbox(system, { ...wish, owner });
    if (key !== lookedFor) return;
    if (answer.kind === 'missing') {
      log.info('no sandbox for programs', { reason: answer.reason });
      if (wish.container.image !== '') lookAgainAt = clock.monotonic() + LOOK_AGAIN_MS;
    }
    // Before anything else: a container that a killed gateway left would work in the workspace
    // beside the next run.
    if (answer.kind === 'found' && answer.engine !== undefined) {
      const { OWNER_LABEL, removeLeft } = await containers();
      const left = await removeLeft(answer.engine, `${OWNER_LABEL}=${owner}`);
      if (left > 0) log.warn('programs of an earlier process ended', { containers: left });
    }
    known = answer;
  }
  return () => {
    const wish = config();
    if (wish.sandbox === 'off') {
      return found(createUnconfined(system.nodePath));
    }
    const { sandbox, container, enabled } = wish;
    const key = JSON.stringify([sandbox, container]);
    const isDue = key !== lookedFor || clock.monotonic() >= lookAgainAt;
    if (enabled && isDue) {
      if (key !== lookedFor) known = NOT_YET;
      [lookedFor, lookAgainAt] = [key, Number.POSITIVE_INFINITY];
      look(wish, key).catch((error: unknown) => log.warn('sandbox not detected', { error }));
    }
    return known;
  };
}
