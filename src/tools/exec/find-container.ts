// Looks for docker or podman, and tries whether a container from the configured image works here as a
// sandbox must: it sees a folder of ours under its own name and may write there, as we would.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';
import { systemClock } from '../../lib/time/clock.ts';
import {
  ask,
  type ContainerEngine,
  createContainer,
  type EngineName,
  engineEnvironment,
  OWNER_LABEL,
  removeLeft,
} from './container.ts';
import { runConfined } from './run-confined.ts';
import { NO_SHIELDS, type Sandbox } from './sandbox.ts';
import { inScriptFolder } from './scripts.ts';
import type { ExecConfig } from './settings.ts';

export type ContainerWish = {
  readonly container: ExecConfig['container'];
  /** Whose runs they are, in letters and digits. */
  readonly owner: string;
  readonly env: Environment;
  readonly path: string;
};

export type FoundContainer =
  | { readonly kind: 'found'; readonly sandbox: Sandbox; readonly engine: ContainerEngine }
  | { readonly kind: 'missing'; readonly reason: string; readonly remedy: string };

const ASK_MS = 10_000;
const CONTAINER_TRIAL_MS = 60_000;
const MEGABYTE = 1_000_000;
/** Podman first: mostly it needs no administrator. */
const ENGINES: readonly EngineName[] = ['podman', 'docker'];
const MAX_WORDS = 300;
/** As docker and podman tell that they do not hold what they were told to hold. */
const LIMIT_LEFT_OUT = /\b(?:discarded|ignored)\b/i;

export async function findContainer(wish: ContainerWish): Promise<FoundContainer> {
  const { image, engine } = wish.container;
  if (image === '') {
    const remedy = 'Name an image that is there in tools.exec.container.image.';
    return { kind: 'missing', reason: 'no image for containers is named', remedy };
  }
  const wanted = engine === 'auto' ? ENGINES : [engine];
  const reasons: string[] = [];
  for (const name of wanted) {
    const tried = await tryEngine(name, wish).catch((error: unknown) => failureOf(name, error));
    if (typeof tried !== 'string') return tried;
    reasons.push(tried);
  }
  const remedy = `Start ${wanted.join(' or ')}, for the user of nanobot, and fetch the image (${wanted[0]} pull ${image}).`;
  return { kind: 'missing', reason: reasons.join('; '), remedy };
}

/** Runs that a gateway of this owner left when it was killed; how many. @throws where that fails */
export const removeLeftRuns = (engine: ContainerEngine, owner: string) =>
  removeLeft(engine, `${OWNER_LABEL}=${owner}`);

type Tried = Extract<FoundContainer, { readonly kind: 'found' }> | string;

/** What is wrong with it, in words, where it cannot be used. */
async function tryEngine(name: EngineName, wish: ContainerWish): Promise<Tried> {
  const { image: imageName, cpus } = wish.container;
  const bare = { program: name, env: engineEnvironment(wish.env, wish.path) };
  const isRootless = await rootless(name, bare);
  const inspect = ['image', 'inspect', '--format', '{{.Id}}', imageName];
  const id = await ask(bare, inspect, ASK_MS).catch(() => '');
  if (!/^(sha256:)?[0-9a-f]{64}$/.test(id)) return `${name} has no image ${imageName}`;
  const engine = { ...bare, name, flags: flagsOf(name, isRootless) };
  const user = userOf(name, isRootless);
  const choice = { engine, image: id, imageName, cpus, user, owner: wish.owner };
  const sandbox = createContainer(choice);
  const fault = await trial(sandbox);
  return fault === undefined ? { kind: 'found', sandbox, engine } : `${name}: ${fault}`;
}

/** @throws where it does not answer */
async function rootless(name: EngineName, engine: Pick<ContainerEngine, 'program' | 'env'>) {
  const asked = name === 'podman' ? '{{.Host.Security.Rootless}}' : '{{.SecurityOptions}}';
  const answer = await ask(engine, ['info', '--format', asked], ASK_MS);
  return name === 'podman' ? answer === 'true' : answer.includes('name=rootless');
}

function flagsOf(name: EngineName, isRootless: boolean): readonly string[] {
  if (name === 'docker') return [];
  // Of itself podman hands the proxy's address on, and gives room to write that nobody counts.
  const own = ['--http-proxy=false', '--read-only-tmpfs=false'];
  return isRootless ? [...own, '--userns=keep-id'] : own;
}

/** The number by which what is written belongs to us: a rootless docker calls us the administrator. */
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

/** The same as a run, in a folder of its own; what is wrong, or undefined. */
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
    return words || 'a folder of this machine is not the same one inside';
  });
}

function failureOf(name: EngineName, error: unknown): string {
  const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
  return isAbsent ? `${name} is not installed` : `${name} does not answer`;
}
