// Conversations that stay on one's own machines: each try of a model call, and each sound that a service
// would make or hear, passes here. What was started from such a conversation is held as it is. Which
// model is where, and what was started from what, others say.

import type { PaidCalls, PlannedCall, Refusal, SideRole } from '../../agent/agent.ts';
import { MODEL_SERVERS, type Models } from '../../agent/models.ts';
import type { KeyValueStore, StateStore } from '../../kernel/bus/store/store.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Contributed } from '../../kernel/contributions.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import type { ModelGuard } from '../../kernel/guards.ts';
import type { Routes } from '../../kernel/intake/routes.ts';
import { type SessionKey, sessionKey } from '../../kernel/message/ids.ts';
import type { Payer } from '../../kernel/message/message.ts';
import { type ChatRef, chatRefOf, sessionKeyOf } from '../../kernel/message/message.ts';

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

/** SpawnSubagents of helpers: deeper than the configuration lets them go. */
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
    return [`Only models on your own machines are used (${by})`];
  }

  /** Conversations that may not be read from that one, by a model that might be a service's. */
  async closedTo(session: SessionKey): Promise<readonly SessionKey[]> {
    const held = await this.#known();
    if (held.size === 0 || (await this.holding(session)) !== undefined) return [];
    return [...held];
  }

  readonly guard: ModelGuard = {
    name: 'local only',
    reserve: async (call, signal, next) => (await this.#refusalFor(call)) ?? next(call, signal),
  };

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
  `No model was asked: ${model} is not on your own machines, and part of what I would review comes from conversations that stay on them (/local only).`;

function refusalOf(holding: Holding, what: string): Refusal | undefined {
  if (holding === undefined) return undefined;
  const where =
    holding === 'all'
      ? 'only models on your own machines are used here (`localModels.only`)'
      : 'this conversation stays on your own machines (/local only)';
  const remedy =
    holding === 'all'
      ? '/local switches to one of them.'
      : '/local switches to a model there, /local off lifts the restriction.';
  const text = `No model was asked: ${what} is not on your own machines, and ${where}. ${remedy}`;
  return { kind: 'refused', text, because: 'local_only' };
}

// Builds what keeps conversations on one's own machines; which of them others were started from, subagents,
// jobs and workflows say.

export const LOCAL_ONLY = port<LocalOnly>('local only');

const SCOPE = 'local-only';

type LocalOnlyParts = {
  readonly live: LiveConfig;
  readonly store: StateStore;
  readonly models: Models;
  readonly routes: Pick<Routes, 'sessionOf'>;
  readonly startedFrom: Contributed['startedFrom'];
};

export function install(kernel: Kernel): void {
  const { live, store, people, contributed } = kernel;
  const models = kernel.use(MODEL_SERVERS);
  const { startedFrom } = contributed;
  const parts = { live, store, models, routes: people.routes, startedFrom };
  const only = openLocalOnly(parts);
  kernel.add.modelGuard(only.guard);
  kernel.provide(LOCAL_ONLY, only);
}

export function openLocalOnly(parts: LocalOnlyParts): LocalOnly {
  const { live, store, models, routes } = parts;
  return new LocalOnly({
    state: store.scope(SCOPE),
    sessionOf: (chat: ChatRef) => routes.sessionOf(chat),
    forAll: () => live.config.localModels.only,
    async isHome(model) {
      // A server says only when it is asked that it hands a model on.
      await models.current().ready(model);
      return models.current().isHome(model);
    },
    async startedFrom(session) {
      const { channel, chat = '' } = chatRefOf(session) ?? {};
      const source = channel === undefined ? undefined : parts.startedFrom(channel);
      return source === undefined ? [] : source(chat);
    },
  });
}
