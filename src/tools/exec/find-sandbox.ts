// Looks for the sandbox that the configuration asks for and this system has, and whether it works here:
// inside many containers the kernel makes no name spaces.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Environment } from '../../kernel/config/environment.ts';
import { isContained } from '../../lib/surroundings.ts';
import { type BubblewrapFeatures, createBubblewrap, trialArgv } from './bubblewrap.ts';
import type { ContainerEngine } from './container.ts';
import { findContainer } from './find-container.ts';
import type { Sandbox } from './sandbox.ts';
import { createSeatbelt } from './seatbelt.ts';
import type { ExecConfig } from './settings.ts';
import { createUnconfined } from './unconfined.ts';

export type FoundSandbox =
  | {
      readonly kind: 'found';
      readonly sandbox: Sandbox;
      /** Why others that come before it are not in force. */
      readonly passedOver: readonly string[];
      readonly engine?: ContainerEngine;
    }
  | { readonly kind: 'missing'; readonly reason: string; readonly remedy: string };

export type SandboxSystem = {
  readonly platform: NodeJS.Platform;
  /** Of the program that runs us. */
  readonly nodePath: string;
  readonly path: string;
  readonly env: Environment;
  /** We are in a container ourselves. */
  readonly isContained: boolean;
};

export type SandboxWish = Pick<ExecConfig, 'sandbox' | 'container'> & {
  /** Whose runs they are, in letters and digits. */
  readonly owner: string;
};

const run = promisify(execFile);
const TRIAL_MS = 10_000;
const SEATBELT = '/usr/bin/sandbox-exec';
const ELSE =
  'or name an image for containers in tools.exec.container.image, or set tools.exec.sandbox to ' +
  '"off", where programs see all that nanobot sees';
const IN_CONTAINER =
  'Give this container leave for them (docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined, and apparmor=unconfined where that is on)';
const ON_MACHINE =
  'Allow user name spaces (kernel.apparmor_restrict_unprivileged_userns=0, kernel.unprivileged_userns_clone=1)';

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
      'there is no sandbox for this system',
      `Run nanobot on Linux or macOS, ${ELSE}.`,
    );
  }
  const reason = missed.map((each) => each.reason).join('; ');
  return missing(reason, missed.map((each) => each.remedy).join(' '));
}

type Kind = 'bubblewrap' | 'seatbelt' | 'container';
type Missing = Extract<FoundSandbox, { readonly kind: 'missing' }>;

/** What the system has of itself, then containers, where an image is named. */
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
  const { platform, nodePath, env, path } = system;
  if (kind === 'bubblewrap') {
    return platform === 'linux' ? findBubblewrap(system) : elsewhere('bubblewrap', 'Linux');
  }
  if (kind === 'seatbelt') {
    const isHere = platform === 'darwin' && existsSync(SEATBELT);
    return isHere ? found(createSeatbelt(nodePath)) : elsewhere('sandbox-exec', 'macOS');
  }
  const answer = await findContainer({ container: wish.container, owner: wish.owner, env, path });
  return answer.kind === 'found' ? { ...answer, passedOver: [] } : answer;
}

const elsewhere = (name: string, system: string) =>
  missing(`${name} is of ${system} only`, 'Set tools.exec.sandbox to "auto".');

async function findBubblewrap({
  nodePath,
  path,
  isContained,
}: SandboxSystem): Promise<FoundSandbox> {
  const options = { env: { PATH: path }, timeout: TRIAL_MS, cwd: '/' };
  const help = await run('bwrap', ['--help'], options).catch(() => undefined);
  if (help === undefined) {
    const install = 'Install bubblewrap (Debian, Ubuntu: apt install bubblewrap)';
    return missing('bubblewrap is not installed', `${install}, ${ELSE}.`);
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
        'the container of nanobot forbids bubblewrap to make name spaces',
        `${IN_CONTAINER}, ${ELSE}.`,
      )
    : missing('bubblewrap cannot make name spaces here', `${ON_MACHINE}, ${ELSE}.`);
}

const YES_OR_NO = [() => true, () => false] as const;

const found = (sandbox: Sandbox): FoundSandbox => ({ kind: 'found', sandbox, passedOver: [] });

const missing = (reason: string, remedy: string): Missing => ({ kind: 'missing', reason, remedy });
