// Conversations that stay on one's own machines: each try of a model call, and each sound that a service
// would make or hear, passes here. What was started from such a conversation is held as it is. Which
// model is where, and what was started from what, others say.

import type {
  PaidCalls,
  PlannedCall,
  Refusal,
  Reservation,
  SideRole,
  SpendingGuard,
} from '../../agent/spending.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { type SessionKey, sessionKey } from '../../kernel/message/ids.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import type { Payer } from '../spending/rules/budget-limits.ts';

type LocalOnlyDeps = {
  readonly state: KeyValueStore;
  /** The configuration says it for all. */
  forAll(): boolean;
  /** By its name with prefix: on one's own machines, or on a peer that was confirmed. */
  isHome(model: string): Promise<boolean>;
  /** The conversation that a chat takes part in. */
  sessionOf(chat: ChatRef): Promise<SessionKey>;
  /** The conversations that a helper, a job or a run of a workflow was started from. */
  startedFrom(session: SessionKey): Promise<readonly SessionKey[]>;
};

type Holding = 'all' | 'conversation' | undefined;

/** Helpers of helpers: deeper than the configuration lets them go. */
const MAX_STEPS = 20;
const ON = '1';

export class LocalOnly {
  readonly #deps: LocalOnlyDeps;
  #held: Promise<Set<SessionKey>> | undefined;

  constructor(deps: LocalOnlyDeps) {
    this.#deps = deps;
  }

  /** Why the conversation is held; undefined: it is not. */
  async holding(session: SessionKey): Promise<Holding> {
    if (this.#deps.forAll()) return 'all';
    return (await this.#isHeld([session])) ? 'conversation' : undefined;
  }

  /** On disk when it resolves. */
  async hold(session: SessionKey, isHeld: boolean): Promise<void> {
    const { state } = this.#deps;
    await state.setMany([{ key: session, value: isHeld ? ON : undefined }]);
    const held = await this.#known();
    if (isHeld) held.add(session);
    else held.delete(session);
  }

  /** Undefined where the model may be asked there. */
  async refusal(session: SessionKey, model: string): Promise<Refusal | undefined> {
    if (await this.#deps.isHome(model)) return undefined;
    return refusalOf(await this.holding(session), model);
  }

  /** For /status. */
  async lines(session: SessionKey): Promise<readonly string[]> {
    const holding = await this.holding(session);
    if (holding === undefined) return [];
    const by = holding === 'all' ? '`localModels.only`' : '/local only';
    return [`Only models on your own machines are asked (${by})`];
  }

  /** Conversations that may not be read from that one, by a model that might be a service's. */
  async closedTo(session: SessionKey): Promise<readonly SessionKey[]> {
    const held = await this.#known();
    if (held.size === 0 || (await this.holding(session)) !== undefined) return [];
    return [...held];
  }

  guard(spending: SpendingGuard): SpendingGuard {
    return {
      modelFor: (...asked) => spending.modelFor(...asked),
      reserve: async (call, signal): Promise<Reservation | Refusal> =>
        (await this.#refusalFor(call)) ?? spending.reserve(call, signal),
    };
  }

  paid(calls: Pick<PaidCalls, 'reservePaid'>): PaidCalls {
    return {
      reservePaid: (call, signal) => calls.reservePaid(call, signal),
      refusedElsewhere: async (payer) => refusalOf(await this.#holdingOf(payer), A_SERVICE),
    };
  }

  async #refusalFor({ payer, model, role }: PlannedCall): Promise<Refusal | undefined> {
    if (!(await this.#mayHold())) return undefined;
    if (await this.#deps.isHome(model)) return undefined;
    const refusal = refusalOf(await this.#holdingOf(payer), model);
    return (
      refusal ?? (role === REFLECTION ? { ...NOT_REFLECTED, text: notReflected(model) } : undefined)
    );
  }

  async #holdingOf({ session, chat }: Payer): Promise<Holding> {
    if (!(await this.#mayHold())) return undefined;
    if (session !== undefined) return this.holding(session);
    if (this.#deps.forAll()) return 'all';
    const sessions = [sessionKeyOf(chat), await this.#deps.sessionOf(chat)];
    return (await this.#isHeld(sessions)) ? 'conversation' : undefined;
  }

  async #mayHold(): Promise<boolean> {
    return this.#deps.forAll() || (await this.#known()).size > 0;
  }

  async #isHeld(sessions: readonly SessionKey[]): Promise<boolean> {
    const held = await this.#known();
    let asked = sessions;
    for (let steps = 0; held.size > 0 && asked.length > 0 && steps < MAX_STEPS; steps += 1) {
      if (asked.some((session) => held.has(session))) return true;
      asked = (await Promise.all(asked.map((each) => this.#deps.startedFrom(each)))).flat();
    }
    return false;
  }

  /** Read once; nobody else writes it. */
  async #known(): Promise<Set<SessionKey>> {
    this.#held ??= this.#deps.state
      .list('')
      .then((rows) => new Set(rows.map(({ key }) => sessionKey(key))));
    try {
      return await this.#held;
    } catch (error) {
      this.#held = undefined;
      throw error;
    }
  }
}

const A_SERVICE = 'a service for voice';
/** Reads what all conversations noted. */
const REFLECTION: SideRole = 'reflection';
const NOT_REFLECTED = { kind: 'refused', because: 'local_only' } as const;
const notReflected = (model: string) =>
  `I asked nobody: ${model} is none of your own machines, and some of what I would think over comes from conversations that stay on them (/local only).`;

function refusalOf(holding: Holding, what: string): Refusal | undefined {
  if (holding === undefined) return undefined;
  const where =
    holding === 'all'
      ? 'here only models on your own machines are asked (`localModels.only`)'
      : 'this conversation stays on your own machines (/local only)';
  const remedy =
    holding === 'all'
      ? '/local changes to one of them.'
      : '/local changes to a model there, /local off takes it back.';
  const text = `I asked nobody: ${what} is none of your own machines, and ${where}. ${remedy}`;
  return { kind: 'refused', text, because: 'local_only' };
}
