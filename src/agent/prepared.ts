// The work that can be done while the person still writes: the conversation so far and the material
// of the prompt. Good until the session changes; then it is simply loaded again.

import type { WorkingNote } from '../features/memory/rules/memory-notes.ts';
import type { StandingNote } from '../features/plans/rules/plan.ts';
import type { SessionKey } from '../kernel/message/ids.ts';
import type { ChatRef } from '../kernel/message/message.ts';
import type { TurnPerson } from '../kernel/message/notes.ts';
import type { TranscriptEntry } from '../kernel/message/transcript.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import type { PreparedContext } from './agent.ts';
import type { PromptMaterial, PromptSources } from './prompt-sources.ts';
import { takenUp } from './rules/turn-closing.ts';

export type Prepared = PreparedContext & {
  readonly person: TurnPerson;
  readonly history: readonly TranscriptEntry[];
  readonly material: PromptMaterial;
  /** What the agent noted of a task under way. */
  readonly standing: StandingNote | undefined;
  /** Of the conversation, where nothing in its history says the same. */
  readonly working: WorkingNote | undefined;
};

/** Both are undefined where there is nothing to tell. */
export type NoteSources = {
  /** What the agent noted of a task under way. */
  standing(session: SessionKey): Promise<StandingNote | undefined>;
  /** What the conversation came to before what its history shows. */
  working(
    session: SessionKey,
    person: TurnPerson,
    history: readonly TranscriptEntry[],
  ): Promise<WorkingNote | undefined>;
};

/** Contexts that wait for their turn; an older one is loaded again when its turn comes. */
const MAX_WAITING = 256;

export class PreparedContexts {
  readonly #sessions: SessionStore;
  readonly #sources: PromptSources;
  readonly #notes: NoteSources;
  readonly #fresh = new Map<SessionKey, Prepared>();

  constructor(sessions: SessionStore, sources: PromptSources, notes: NoteSources) {
    this.#sessions = sessions;
    this.#sources = sources;
    this.#notes = notes;
  }

  async prepare(session: SessionKey, chat: ChatRef, person: TurnPerson): Promise<Prepared> {
    const [window, material, standing] = await Promise.all([
      this.#sessions.load(session, 'forNextTurn'),
      this.#sources.read(chat.channel, person.notes),
      this.#notes.standing(session),
    ]);
    const history = takenUp(window);
    const working = await this.#notes.working(session, person, history);
    const prepared = { session, person, history, material, standing, working };
    this.#fresh.delete(session);
    this.#fresh.set(session, prepared);
    const [oldest] = this.#fresh.keys();
    if (this.#fresh.size > MAX_WAITING && oldest !== undefined) this.#fresh.delete(oldest);
    return prepared;
  }

  /** The context as prepared, or a new one where the session has moved on since. */
  async current(context: PreparedContext, chat: ChatRef, person: TurnPerson): Promise<Prepared> {
    const fresh = this.#fresh.get(context.session);
    if (fresh === context && fresh.person.notes === person.notes) return fresh;
    return this.prepare(context.session, chat, person);
  }

  /** To be called when the session's history changes. */
  outdated(session: SessionKey): void {
    this.#fresh.delete(session);
  }
}
