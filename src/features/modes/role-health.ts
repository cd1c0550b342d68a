// How the models that share the work with the main one are: a breaker for each, and who is told when one
// stops answering and when it answers again. In memory: a new process finds out anew.

import type { Clock } from '../../lib/time/clock.ts';
import {
  afterFailure,
  type Breaker,
  type BreakerPolicy,
  CLOSED,
  isOpen,
} from '../../providers/rules/provider-failure.ts';
import type { Payer } from '../spending/rules/budget-limits.ts';

export type RoleName =
  | 'router'
  | 'specialist'
  | 'tool_runner'
  | 'supervisor'
  /** One that is declared, by its name. */
  | `specialist:${string}`;
/** A model in one of the roles; each is judged by itself. */
export type RoleModel = { readonly role: RoleName; readonly model: string };

export type RoleHealthDeps = {
  readonly clock: Clock;
  policy(): BreakerPolicy;
  /** An owner is told. */
  announce(text: string): void;
};

export type UsedRole = RoleModel & {
  /** Whose turn used it last; pays for looking after it. */
  readonly payer: Payer;
  /** Monotonic milliseconds. */
  readonly usedAt: number;
};

/** `silent`: no answer came; `useless`: one that nothing could be made of. */
type RoleFailure = 'silent' | 'useless';

type Known = {
  readonly breaker: Breaker;
  readonly used: UsedRole;
  readonly sinceMs: number;
  /** Of the last failure. */
  readonly how: RoleFailure;
};

/** For people. */
function titleOfRole(role: RoleName): string {
  return role === 'tool_runner' ? 'runner of results' : role.replace(':', ' ');
}
export const titleOf = ({ role, model }: RoleModel) => `${titleOfRole(role)} ${model}`;

export class RoleHealth {
  readonly #deps: RoleHealthDeps;
  readonly #known = new Map<string, Known>();
  #wake = Promise.withResolvers<void>();

  constructor(deps: RoleHealthDeps) {
    this.#deps = deps;
  }

  /** Whether it is left alone for now. */
  isResting(model: RoleModel): boolean {
    const known = this.#known.get(keyOf(model));
    return known !== undefined && isOpen(known.breaker, this.#deps.clock.monotonic());
  }

  /** `payer`: of the turn; left out where only looked after. */
  succeeded(model: RoleModel, payer?: Payer): void {
    const known = this.#used(model, payer);
    if (known === undefined) return;
    const wasOut = known.breaker.openUntil !== undefined;
    this.#known.set(keyOf(model), { ...known, breaker: CLOSED });
    if (wasOut) this.#deps.announce(`The ${titleOf(model)} answers again.`);
  }

  /** Whether this failure is the one after which it is left alone. */
  failed(model: RoleModel, payer: Payer, how: RoleFailure): boolean {
    const known = this.#used(model, payer);
    const now = this.#deps.clock.monotonic();
    const wasOut = known.breaker.openUntil !== undefined;
    const breaker = afterFailure(known.breaker, this.#deps.policy(), now);
    const isOut = breaker.openUntil !== undefined && !wasOut;
    const sinceMs = isOut ? this.#deps.clock.now() : known.sinceMs;
    this.#known.set(keyOf(model), { ...known, breaker, sinceMs, how });
    if (isOut)
      this.#deps.announce(`${this.sentence(model)} The main model does the work meanwhile.`);
    this.#wake.resolve();
    return isOut;
  }

  /** For people. */
  sentence(model: RoleModel): string {
    const known = this.#known.get(keyOf(model));
    const failures = known?.breaker.failures ?? 0;
    if (known === undefined) return `The ${titleOf(model)} was not asked yet.`;
    if (failures === 0) return `The ${titleOf(model)} answers.`;
    const since = new Date(known.sinceMs).toISOString().slice(0, 16).replace('T', ' ');
    return known.breaker.openUntil === undefined
      ? `The ${titleOf(model)} failed ${times(failures)}.`
      : `The ${titleOf(model)} ${TROUBLE[known.how]} since ${since} UTC (failed ${times(failures)}).`;
  }

  /**
   * Of those used since then: which did not answer last time. That one answers again says nothing of
   * whether its answers can be used. Monotonic milliseconds.
   */
  failing(since: number): readonly UsedRole[] {
    return [...this.#known.values()].flatMap(({ breaker, used, how }) =>
      breaker.failures > 0 && how === 'silent' && used.usedAt >= since ? [used] : [],
    );
  }

  /** Resolves when something failed since it was asked last. */
  async troubled(signal: AbortSignal): Promise<void> {
    const stopped = Promise.withResolvers<void>();
    const stop = () => stopped.resolve();
    signal.addEventListener('abort', stop, { once: true });
    await Promise.race([this.#wake.promise, stopped.promise]);
    signal.removeEventListener('abort', stop);
    this.#wake = Promise.withResolvers<void>();
  }

  #used(model: RoleModel, payer: Payer): Known;
  #used(model: RoleModel, payer: Payer | undefined): Known | undefined;
  #used(model: RoleModel, payer: Payer | undefined): Known | undefined {
    const { clock } = this.#deps;
    const known = this.#known.get(keyOf(model));
    if (payer === undefined) return known;
    const used = { ...model, payer, usedAt: clock.monotonic() };
    const { breaker = CLOSED, sinceMs = clock.now(), how = 'silent' } = known ?? {};
    return { breaker, used, sinceMs, how };
  }
}

const keyOf = ({ role, model }: RoleModel) => `${role}:${model}`;
const TROUBLE: Readonly<Record<RoleFailure, string>> = {
  silent: 'does not answer',
  useless: 'says nothing that can be used',
};
const times = (count: number) => (count === 1 ? 'once' : `${count} times`);
