// Looks once, beside the start, for the sandbox of this system and whether it works here: inside many
// containers it does not.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { type BubblewrapFeatures, createBubblewrap, trialArgv } from './bubblewrap.ts';
import type { Sandbox } from './sandbox.ts';
import { createSeatbelt } from './seatbelt.ts';

export type FoundSandbox =
  | { readonly kind: 'found'; readonly sandbox: Sandbox }
  | { readonly kind: 'missing'; readonly reason: string; readonly remedy: string };

export type SandboxSystem = {
  readonly platform: NodeJS.Platform;
  /** Of the program that runs us. */
  readonly nodePath: string;
  readonly path: string;
};

const run = promisify(execFile);
const TRIAL_MS = 10_000;
const SEATBELT = '/usr/bin/sandbox-exec';
const ELSE = 'or set tools.exec.sandbox to "off", where programs see all that nanobot sees';

export const thisSystem = (): SandboxSystem => ({
  platform: process.platform,
  nodePath: process.execPath,
  path: '/usr/local/bin:/usr/bin:/bin',
});

export async function findSandbox(system: SandboxSystem): Promise<FoundSandbox> {
  const { platform, nodePath } = system;
  if (platform === 'linux') return findBubblewrap(system);
  if (platform === 'darwin' && existsSync(SEATBELT)) {
    return { kind: 'found', sandbox: createSeatbelt(nodePath) };
  }
  return missing('there is no sandbox for this system', `Run nanobot on Linux or macOS, ${ELSE}.`);
}

async function findBubblewrap({ nodePath, path }: SandboxSystem): Promise<FoundSandbox> {
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
  if (works) return { kind: 'found', sandbox: createBubblewrap(features, nodePath) };
  return missing(
    'bubblewrap cannot make name spaces here',
    `Allow user name spaces (kernel.apparmor_restrict_unprivileged_userns=0, kernel.unprivileged_userns_clone=1, or the security options of the container), ${ELSE}.`,
  );
}

const YES_OR_NO = [() => true, () => false] as const;

const missing = (reason: string, remedy: string): FoundSandbox => ({
  kind: 'missing',
  reason,
  remedy,
});
