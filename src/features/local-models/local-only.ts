// Keeps the conversations that are marked local-only on one's own machines: checks each attempt of
// a model call, and each transcription and speech request. Subagents, jobs and workflow runs
// inherit the mark of the conversation that started them.

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
import { t } from '../../lib/texts.ts';

type LocalOnlyDeps = {
  readonly state: KeyValueStore;
  /** The configuration applies it to all conversations. */
  forAll(): boolean;
  /**
   * Whether the model, named with its prefix, runs on one's own machines or on a confirmed peer.
   */
  isHome(model: string): Promise<boolean>;
  /** The session of a chat. */
  sessionOf(chat: ChatRef): Promise<SessionKey>;
  /** The sessions from which a subagent, a job or a workflow run was started. */
  startedFrom(session: SessionKey): Promise<readonly SessionKey[]>;
};

type Holding = 'all' | 'conversation' | undefined;

/**
 * Bound of the chain of sessions that is followed; deeper than the configuration lets subagents
 * nest.
 */
const MAX_STEPS = 20;
const ON = '1';

export class LocalOnly {
  readonly #deps: LocalOnlyDeps;
  #held: Promise<Set<SessionKey>> | undefined;

  constructor(deps: LocalOnlyDeps) {
    this.#deps = deps;
  }

  /** What restricts the session; undefined where nothing does. */
  async holding(session: SessionKey): Promise<Holding> {
    if (this.#deps.forAll()) return 'all';
    return (await this.#isHeld([session])) ? 'conversation' : undefined;
  }

  /** On the disk when it resolves. */
  async hold(session: SessionKey, isHeld: boolean): Promise<void> {
    const { state } = this.#deps;
    await state.setMany([{ key: session, value: isHeld ? ON : undefined }]);
    const held = await this.#known();
    if (isHeld) held.add(session);
    else held.delete(session);
  }

  /** Undefined where the model may be used. */
  async refusal(session: SessionKey, model: string): Promise<Refusal | undefined> {
    if (await this.#deps.isHome(model)) return undefined;
    return refusalOf(await this.holding(session), model);
  }

  /** For /status. */
  async lines(session: SessionKey): Promise<readonly string[]> {
    const holding = await this.holding(session);
    if (holding === undefined) return [];
    const by = holding === 'all' ? '`localModels.only`' : '/local only';
    return [t`Only models on your own machines are used (${by})`];
  }

  /**
   * Sessions that must not be read from that one, because its model may belong to a cloud service.
   */
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

  /** Read once; nothing else writes it. */
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

const A_SERVICE = t`a service for voice`;
/** Reads the notes of all conversations. */
const REFLECTION: SideRole = 'reflection';
const NOT_REFLECTED = { kind: 'refused', because: 'local_only' } as const;
const notReflected = (model: string) =>
  t`No model was asked: ${model} is not on your own machines, and part of what I would review comes from conversations that stay on them (/local only).`;

function refusalOf(holding: Holding, what: string): Refusal | undefined {
  if (holding === undefined) return undefined;
  const where =
    holding === 'all'
      ? t`only models on your own machines are used here (\`localModels.only\`)`
      : t`this conversation stays on your own machines (/local only)`;
  const remedy =
    holding === 'all'
      ? '/local switches to one of them.'
      : '/local switches to a model there, /local off lifts the restriction.';
  const text = t`No model was asked: ${what} is not on your own machines, and ${where}. ${remedy}`;
  return { kind: 'refused', text, because: 'local_only' };
}

// Builds the local-only check from the contributions of subagents, jobs and workflows, which tell
// which session started which.

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
      // A server reports only on request that it forwards a model to the cloud.
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
