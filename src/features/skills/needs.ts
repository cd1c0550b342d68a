// Whether what a skill needs is there: programs on the path, environment variables, the system.

import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { SkillNeeds } from './rules/skill.ts';

/** A program that was just installed is noticed after at most this. */
const REMEMBERED_MS = 30_000;
const PLAIN_NAME = /^[A-Za-z0-9][A-Za-z0-9._+-]*$/;
const MAX_REMEMBERED = 500;

export interface NeedsCheck {
  /** What is missing, in words; empty where all is there. */
  missing(needs: SkillNeeds): Promise<readonly string[]>;
}

export function createNeedsCheck(
  env: Environment,
  clock: Pick<Clock, 'monotonic'>,
  platform: string = process.platform,
): NeedsCheck {
  const found = new Map<string, { readonly isThere: boolean; readonly at: number }>();

  async function hasProgram(name: string): Promise<boolean> {
    const known = found.get(name);
    if (known !== undefined && clock.monotonic() - known.at < REMEMBERED_MS) return known.isThere;
    if (found.size >= MAX_REMEMBERED) found.clear();
    const isThere = PLAIN_NAME.test(name) && (await isOnPath(name, env['PATH'] ?? ''));
    found.set(name, { isThere, at: clock.monotonic() });
    return isThere;
  }

  return {
    async missing({ bins, env: names, os }) {
      const programs = await Promise.all(
        bins.map(async (name) => ((await hasProgram(name)) ? [] : [`the program ${name}`])),
      );
      const variables = names
        .filter((name) => (env[name] ?? '') === '')
        .map((name) => `the environment variable ${name}`);
      const system = os.length === 0 || os.includes(platform) ? [] : [`one of: ${os.join(', ')}`];
      return [...programs.flat(), ...variables, ...system];
    },
  };
}

async function isOnPath(name: string, path: string): Promise<boolean> {
  for (const folder of path.split(delimiter)) {
    if (folder === '') continue;
    const isThere = await access(join(folder, name), constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return true;
  }
  return false;
}
