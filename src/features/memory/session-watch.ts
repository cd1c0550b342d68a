// Draws notes from what is recorded in conversations, behind the turn and never in its way: working
// memory from summaries, learnings from tools that failed and from thumbs down. Names and kinds only:
// what a tool said may be the words of others.

import { firstSeqOf, type SessionKey } from '../../kernel/message/ids.ts';
import type { TurnPerson } from '../../kernel/message/notes.ts';
import type { ToolEntry, TranscriptEntry } from '../../kernel/message/transcript.ts';
import { createLanes } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Learning, MemoryStore } from './memory.ts';
import type { WorkingMemories } from './working-memory.ts';

export type SessionWatchDeps = {
  readonly memory: Pick<MemoryStore, 'learn'>;
  readonly working: WorkingMemories;
  readonly log: Logger;
  readonly isEnabled: () => boolean;
  /** What it came to is not to be read in other conversations. */
  staysIn(session: SessionKey): Promise<boolean>;
};

const MAX_SESSIONS = 2000;
const DISLIKED = /\[reacted with 👎\p{Emoji_Modifier}? to your answer /u;

type Known = {
  readonly person: TurnPerson;
  /** Tools that failed in the turn, with why. */
  failed: Map<string, string>;
};

export type SessionWatch = ReturnType<typeof createSessionWatch>;

export function createSessionWatch(deps: SessionWatchDeps) {
  const { memory, working, log } = deps;
  const known = new Map<SessionKey, Known>();
  const lanes = createLanes();
  const running = new Set<Promise<unknown>>();

  function behind(notes: string, task: () => Promise<void>) {
    const work = lanes
      .run(notes, task)
      .catch((error: unknown) => log.warn('notes of a conversation not written', { error }));
    running.add(work);
    void work.finally(() => running.delete(work));
  }

  function take(session: SessionKey, { person, failed }: Known, entry: TranscriptEntry) {
    const { notes } = person;
    if (entry.role === 'reset') behind(notes, () => working.complete(notes, session));
    if (entry.role === 'summary' && entry.omitted === undefined) {
      const keepsFrom = entry.keepsFrom === undefined ? 0 : (firstSeqOf(entry.keepsFrom) ?? 0);
      const { text, isForeign = false } = entry;
      const summary = { text, throughTurn: Math.max(0, keepsFrom - 1), isForeign };
      behind(notes, async () => {
        if (!(await deps.staysIn(session))) await working.write(notes, session, summary);
      });
    }
    if (entry.role === 'turn_end') {
      failed.clear();
      behind(notes, () => working.turned(notes, session));
    }
    const learnt = learningOf(entry, failed);
    if (learnt !== undefined) behind(notes, () => memory.learn([learnt], person));
  }

  /** What was appended before stands in the notes when this resolves. */
  async function settled(): Promise<void> {
    await Promise.allSettled(running);
  }

  return {
    /** Whose the conversation is. */
    opened(session: SessionKey, person: TurnPerson): void {
      if (known.get(session)?.person.notes === person.notes) return;
      if (known.size >= MAX_SESSIONS) known.clear();
      known.set(session, { person, failed: new Map() });
    },
    appended(session: SessionKey, entries: readonly TranscriptEntry[]): void {
      const whose = known.get(session);
      if (whose === undefined || !deps.isEnabled()) return;
      for (const entry of entries) take(session, whose, entry);
    },
    settled,
    [Symbol.asyncDispose]: settled,
  };
}

function learningOf(entry: TranscriptEntry, failed: Map<string, string>): Learning | undefined {
  if (entry.role === 'user' && entry.isForeign !== true && DISLIKED.test(entry.text)) {
    return { kind: 'reaction', succeeded: false, context: 'an answer was disliked' };
  }
  return entry.role === 'tool' ? toolLearning(entry, failed) : undefined;
}

function toolLearning(
  { name, status, failure, isBlocked }: ToolEntry,
  failed: Map<string, string>,
): Learning | undefined {
  if (isBlocked === true || failure === 'permission' || failure === 'cancelled') return undefined;
  const tool = { kind: 'tool', tool: name } as const;
  if (status === 'failed') {
    const error = failure ?? 'execution';
    failed.set(name, error);
    return { ...tool, succeeded: false, context: 'failed', error };
  }
  const why = failed.get(name);
  if (status !== 'ok' || why === undefined) return undefined;
  failed.delete(name);
  return { ...tool, succeeded: true, context: `worked after it had failed: ${why}` };
}
