// The health of the models that share a turn with the main one, by role: a circuit breaker, notices
// about outages, and probes. In memory only; a new process starts without knowledge.

import type { SpendingGuard } from '../../agent/agent.ts';
import { chargedMeter, untilAborted } from '../../agent/side-model.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import type { Payer } from '../../kernel/message/message.ts';
import { createChange } from '../../lib/async.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import { type Clock, following } from '../../lib/time/clock.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import {
  afterFailure,
  type Breaker,
  type BreakerPolicy,
  CLOSED,
  isOpen,
} from '../../providers/rules/provider-failure.ts';

type RoleName =
  | 'router'
  | 'specialist'
  | 'tool_runner'
  | 'supervisor'
  /** A declared specialist, by name. */
  | `specialist:${string}`;
/** A model in a role; each pair has its own breaker. */
export type RoleModel = { readonly role: RoleName; readonly model: string };

type RoleHealthDeps = {
  readonly clock: Clock;
  policy(): BreakerPolicy;
  /** Sends a notice to the owner. */
  announce(text: string): void;
};

type UsedRole = RoleModel & {
  /** Payer of the last turn that used it; also pays for its probes. */
  readonly payer: Payer;
  /** Monotonic milliseconds. */
  readonly usedAt: number;
};

/** `silent`: no response; `useless`: the response could not be used. */
type RoleFailure = 'silent' | 'useless';

type Known = {
  readonly breaker: Breaker;
  readonly used: UsedRole;
  /** Start of the current outage; monotonic milliseconds. */
  readonly sinceMs: number;
  /** The kind of the last failure. */
  readonly how: RoleFailure;
};

export class RoleHealth {
  readonly #deps: RoleHealthDeps;
  readonly #known = new Map<string, Known>();
  readonly #failures = createChange();

  constructor(deps: RoleHealthDeps) {
    this.#deps = deps;
  }

  /** Whether its breaker is open. */
  isResting(model: RoleModel): boolean {
    const known = this.#known.get(keyOf(model));
    return known !== undefined && isOpen(known.breaker, this.#deps.clock.monotonic());
  }

  /** `payer`: of the turn; left out for a probe. */
  succeeded(model: RoleModel, payer?: Payer): void {
    const known = this.#known.get(keyOf(model));
    const usedAt = this.#deps.clock.monotonic();
    const used = payer === undefined ? known?.used : { ...model, payer, usedAt };
    if (used === undefined) return;
    const { sinceMs, how } = known ?? { sinceMs: 0, how: 'silent' };
    this.#known.set(keyOf(model), { breaker: CLOSED, used, sinceMs, how });
    const wasOut = known?.breaker.openUntil !== undefined;
    if (wasOut) this.#deps.announce(t`The ${titleOf(model)} answers again.`);
  }

  /** Whether this failure opens the breaker. */
  failed(model: RoleModel, payer: Payer, how: RoleFailure): boolean {
    const { clock, policy, announce } = this.#deps;
    const usedAt = clock.monotonic();
    const now = clock.now();
    const before = this.#known.get(keyOf(model)) ?? { breaker: CLOSED, sinceMs: now };
    const breaker = afterFailure(before.breaker, policy(), usedAt);
    const isOut = breaker.openUntil !== undefined && before.breaker.openUntil === undefined;
    const sinceMs = isOut ? now : before.sinceMs;
    this.#known.set(keyOf(model), { breaker, used: { ...model, payer, usedAt }, sinceMs, how });
    if (isOut) announce(t`${this.sentence(model)} The main model takes over meanwhile.`);
    this.#failures.notify();
    return isOut;
  }

  /** A sentence about its health, for people. */
  sentence(model: RoleModel): string {
    const known = this.#known.get(keyOf(model));
    if (known === undefined) return t`The ${titleOf(model)} has not been asked yet.`;
    const { failures, openUntil } = known.breaker;
    if (failures === 0) return t`The ${titleOf(model)} answers.`;
    const times = ngettext(msgid`failed once`, `failed ${failures} times`, failures);
    if (openUntil === undefined) return t`The ${titleOf(model)} ${times}.`;
    const since = new Date(known.sinceMs).toISOString().slice(0, 16).replace('T', ' ');
    return t`The ${titleOf(model)} ${TROUBLE[known.how]} since ${since} UTC (${times}).`;
  }

  /**
   * Models used since then (monotonic milliseconds) whose last call got no response. Useless
   * responses do not count: a probe cannot show whether responses are usable.
   */
  failing(since: number): readonly UsedRole[] {
    return [...this.#known.values()].flatMap(({ breaker, used, how }) =>
      breaker.failures > 0 && how === 'silent' && used.usedAt >= since ? [used] : [],
    );
  }

  /** Resolves at the next failure. @throws the signal's reason */
  nextFailure(signal: AbortSignal): Promise<void> {
    return this.#failures.next(signal);
  }
}

const TROUBLE: Readonly<Record<RoleFailure, string>> = {
  silent: t`does not answer`,
  useless: t`gives no usable answer`,
};

const keyOf = ({ role, model }: RoleModel) => `${role}:${model}`;

/** For people. */
const titleOf = ({ role, model }: RoleModel) =>
  `${role === 'tool_runner' ? t`runner of results` : role.replace(':', ' ')} ${model}`;

/** For the person whose turn notices it. */
export const degradedNotice = (who: RoleModel) =>
  t`The ${titleOf(who)} is not working; I continue with the main model and its tools.`;

/** A sentence about a configured model that cannot be called. */
export function missing(
  models: () => ModelRegistry,
  key: string,
  model: string,
  isNeeded: boolean,
): readonly string[] {
  if (model === '') return isNeeded ? [t`${key} names no model`] : [];
  try {
    models().resolve(model);
    return [];
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return [`${key}: ${error.userText ?? t`${model} has no provider`}`];
  }
}

// Probes failed models that turns used lately with a call of one token, so that a recovered model
// is known before the next turn. Sends nothing while all models respond.

type RoleProbesDeps = {
  readonly health: RoleHealth;
  readonly spending: SpendingGuard;
  readonly clock: Clock;
  models(): ModelRegistry;
  /** 0: no probes. */
  everyMs(): number;
};

const TIMEOUT_MS = 5000;
/** A model that was not used for this long is not probed. */
const USED_WITHIN_MS = 600_000;
const QUESTION = { role: 'user', text: 'ping' } as const;

export async function probeRoles(deps: RoleProbesDeps, signal: AbortSignal): Promise<void> {
  const { health, clock } = deps;
  const failing = () => health.failing(clock.monotonic() - USED_WITHIN_MS);
  while (!signal.aborted) {
    while (!signal.aborted && deps.everyMs() > 0 && failing().length > 0) {
      await clock.sleep(deps.everyMs(), signal).catch(() => undefined);
      if (!signal.aborted) await Promise.all(failing().map((used) => probe(deps, used, signal)));
    }
    await health.nextFailure(signal).catch(() => undefined);
  }
}

/** Never throws: a model that does not respond keeps its state. */
async function probe(
  { health, spending, clock, models }: RoleProbesDeps,
  used: UsedRole,
  signal: AbortSignal,
): Promise<void> {
  using ending = following(signal);
  using _deadline = clock.timer(TIMEOUT_MS, () => ending.abort());
  try {
    const metered = { role: 'probe', maxTokens: 1, inputTokens: () => 1 };
    const meter = chargedMeter(spending, used.payer, metered);
    const request = { system: [], messages: [QUESTION], tools: [], maxTokens: 1 };
    const answer = models().resolve(used.model, 'once').stream(request, ending.signal, meter);
    for await (const event of untilAborted(answer, ending.signal)) {
      if (event.type === 'finished') health.succeeded(used);
    }
  } catch {
    // Not reported: the outage was reported when it began.
  }
}
