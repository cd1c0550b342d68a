// Looks after models that failed: a call of one token, as long as turns used them lately, so that a model
// that is back is known before the next turn waits for it. Nothing is asked while all answer.

import { chargedMeter, untilAborted } from '../../agent/side-model.ts';
import type { SpendingGuard } from '../../agent/spending.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { withFenceClosed } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { RoleAnswer } from './ask-role.ts';
import { type RoleHealth, type RoleModel, titleOf, type UsedRole } from './role-health.ts';

export type RoleProbesDeps = {
  readonly health: RoleHealth;
  readonly spending: SpendingGuard;
  readonly clock: Clock;
  models(): ModelRegistry;
  /** 0: nothing is looked after. */
  everyMs(): number;
};

const TIMEOUT_MS = 5000;
/** A model that nobody used for so long is left alone. */
const USED_WITHIN_MS = 600_000;
const QUESTION = { role: 'user', text: 'ping' } as const;

export async function probeRoles(deps: RoleProbesDeps, signal: AbortSignal): Promise<void> {
  const { health, clock } = deps;
  while (!signal.aborted) {
    await health.troubled(signal);
    const failing = () => health.failing(clock.monotonic() - USED_WITHIN_MS);
    while (!signal.aborted && deps.everyMs() > 0 && failing().length > 0) {
      await clock.sleep(deps.everyMs(), signal).catch(() => undefined);
      if (signal.aborted) return;
      await Promise.all(failing().map((used) => probe(deps, used, signal)));
    }
  }
}

/** Never throws: what does not answer stays as it is. */
async function probe(
  { health, spending, clock, models }: RoleProbesDeps,
  used: UsedRole,
  signal: AbortSignal,
): Promise<void> {
  const late = new AbortController();
  const deadline = clock.timer(TIMEOUT_MS, () => late.abort());
  try {
    const either = AbortSignal.any([signal, late.signal]);
    const meter = chargedMeter(spending, used.payer, {
      role: 'probe',
      maxTokens: 1,
      inputTokens: () => 1,
    });
    const request = { system: [], messages: [QUESTION], tools: [], maxTokens: 1 };
    const answer = models().resolve(used.model, 'once').stream(request, either, meter);
    for await (const event of untilAborted(answer, either)) {
      if (event.type === 'finished') health.succeeded(used);
    }
  } catch {
    // Told already when it stopped answering.
  } finally {
    deadline[Symbol.dispose]();
  }
}

// What people are told of the models that share the work, and what these wrote.

/** A sentence about a model that cannot be asked. */
export function missing(
  models: () => ModelRegistry,
  key: string,
  model: string,
  isNeeded: boolean,
): readonly string[] {
  if (model === '') return isNeeded ? [`${key} names no model`] : [];
  try {
    models().resolve(model);
    return [];
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return [`${key}: ${error.userText ?? `${model} is served by nobody`}`];
  }
}

/** For the person whose turn finds out. */
export const degradedNotice = (who: RoleModel) =>
  `The ${titleOf(who)} does not do its part now; I go on with the main model and its tools.`;

const CUT_OFF = '[It ends here, because the limit of its length was reached.]';

/** To the letter; what was cut off says so, and a refusal is no result. */
export function writtenBy({ text: all, stop }: Pick<RoleAnswer, 'text' | 'stop'>): string {
  const text = all.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd();
  if (text === '' || stop === 'refused') return '';
  return stop === 'length' ? `${withFenceClosed(text)}\n\n${CUT_OFF}` : text;
}
