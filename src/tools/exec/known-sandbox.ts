// The sandbox in force: looked for beside the start, and anew when the configuration asks for another.
// Until it is known there is none.

import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { removeLeftRuns } from './find-container.ts';
import { type FoundSandbox, findSandbox, type SandboxSystem } from './find-sandbox.ts';
import type { ExecConfig } from './settings.ts';
import { createUnconfined } from './unconfined.ts';

export type KnownSandboxDeps = {
  readonly system: SandboxSystem;
  readonly log: Logger;
  readonly clock: Clock;
  /** Whose runs they are, in letters and digits. */
  readonly owner: string;
  config(): ExecConfig;
};

const LOOK_AGAIN_MS = 60_000;

const NOT_YET: FoundSandbox = {
  kind: 'missing',
  reason: 'the sandbox is still being looked for',
  remedy: 'Try again in a moment.',
};

/** What is known of it by now; the first question begins the look. */
export function createKnownSandbox(deps: KnownSandboxDeps): () => FoundSandbox {
  const { system, log, clock, owner, config } = deps;
  let lookedFor: string | undefined;
  /** By the monotonic clock; an engine may start later than we do. */
  let lookAgainAt = Number.POSITIVE_INFINITY;
  let known = NOT_YET;
  async function look(wish: ExecConfig, key: string): Promise<void> {
    const answer = await findSandbox(system, { ...wish, owner });
    if (key !== lookedFor) return;
    if (answer.kind === 'missing') {
      log.info('no sandbox for programs', { reason: answer.reason });
      if (wish.container.image !== '') lookAgainAt = clock.monotonic() + LOOK_AGAIN_MS;
    }
    // First of all: what a killed gateway left would work in the workspace beside the next run.
    if (answer.kind === 'found' && answer.engine !== undefined) {
      const left = await removeLeftRuns(answer.engine, owner);
      if (left > 0) log.warn('programs of an earlier process ended', { containers: left });
    }
    known = answer;
  }
  return () => {
    const wish = config();
    if (wish.sandbox === 'off') {
      return { kind: 'found', sandbox: createUnconfined(system.nodePath), passedOver: [] };
    }
    const { sandbox, container, enabled } = wish;
    const key = JSON.stringify([sandbox, container]);
    const isDue = key !== lookedFor || clock.monotonic() >= lookAgainAt;
    if (enabled && isDue) {
      if (key !== lookedFor) known = NOT_YET;
      [lookedFor, lookAgainAt] = [key, Number.POSITIVE_INFINITY];
      look(wish, key).catch((error: unknown) => log.warn('sandbox not looked for', { error }));
    }
    return known;
  };
}
