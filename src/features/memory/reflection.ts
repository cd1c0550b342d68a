// Reflection: proposes a new memory, shows the changes, and writes it only with the consent of the
// person who asked.

import { hash } from 'node:crypto';
import { z } from 'zod';
import { SpendingRefusedError } from '../../agent/agent.ts';
import { MEMORY_FILE } from '../../agent/rules/prompt.ts';
import { textTokens } from '../../agent/rules/tokens.ts';
import type { SideModel } from '../../agent/side-model.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { BackgroundTask } from '../../kernel/contributions.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { messageId } from '../../kernel/message/ids.ts';
import type { Payer } from '../../kernel/message/message.ts';
import { type ChatRef, type InboundMessage, idsOf } from '../../kernel/message/message.ts';
import { OWNER_TURN } from '../../kernel/message/untrusted.ts';
import {
  LIFETIME_MS,
  payloadHandler,
  type Question,
} from '../../kernel/questions/question-rows.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { jsonRows } from '../../kernel/rows.ts';
import type { TurnPersonOf } from '../../kernel/turns/origins.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { jsonRow, number, object, rowShape, text } from '../../lib/json/json.ts';
import { headOf, keepLastLines } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { quietUntil } from '../../lib/time/quiet-hours.ts';
import {
  BACKUPS_FOLDER,
  DAY_NOTE,
  LEARNINGS_FILE,
  listFiles,
  MAX_NOTE_BYTES,
  MEMORY_FOLDER,
  type NoteReader,
  readNote,
} from './notes.ts';
import {
  learningPatterns,
  lineChanges,
  type NoteToReflect,
  proposalOf,
  REFLECTION_PROMPT,
  readLearnings,
  reflectionText,
} from './rules/memory-notes.ts';
import type { WorkingMemories } from './working-memory.ts';

/** `words`: the text for a person. */
export type ThoughtOver = {
  readonly kind: 'asked' | 'written' | 'left';
  readonly words: string;
};

type ReflectionServiceDeps = {
  readonly personOf: TurnPersonOf;
  readonly side: SideModel;
  readonly reflection: Pick<Reflection, 'propose' | 'apply'>;
  readonly questions: Pick<Questions, 'ask' | 'get'>;
  /** Where an owner is asked. */
  ownerChat(): Promise<ChatRef>;
};

/** The subject kind of the question. */
export const REFLECTION_SUBJECT = 'reflection';

const SHOWN_LINES = 60;
const SHOWN_CHARS = 2500;
const NOTHING = t`There is nothing to review: the memory already has every note.`;
const USELESS = t`The result would have dropped too much of what I remember, so I kept the memory unchanged.`;
const THOUGHT = t`I reviewed what I remember.`;
const FAILED = t`I could not review it now.`;

export type ReflectionService = ReturnType<typeof createReflectionService>;

export function createReflectionService(deps: ReflectionServiceDeps) {
  const { personOf, side, reflection, questions } = deps;

  /** A text for the person where there is none. */
  async function proposalFor(payer: Payer, notesOf: () => Promise<string>) {
    const { signal } = new AbortController();
    const askModel: AskModel = (system, text, maxTokens) =>
      side.complete({ role: 'reflection', payer, system, text, maxTokens }, signal);
    try {
      const reflected = await reflection.propose(await notesOf(), askModel);
      if (reflected.kind === 'proposed') return reflected;
      return reflected.kind === 'nothing' ? NOTHING : USELESS;
    } catch (error) {
      if (error instanceof SpendingRefusedError) return error.text;
      if (error instanceof ProviderError) return `${error.userText ?? ''} ${FAILED}`.trim();
      throw error;
    }
  }

  const isAsked = async (name: string) => (await questions.get(questionId(name))) !== undefined;

  const ask = (
    name: string,
    { proposal, changes }: Found,
    who: Pick<Question, 'chat' | 'approvers'>,
  ) =>
    questions.ask({
      ...who,
      id: questionId(name),
      markdown: t`Change what I remember like this?\n\n${shown(changes)}`,
      choices: [
        { label: t`Change`, action: 'write' },
        { label: t`Keep as it is`, action: 'leave' },
      ],
      subject: `${REFLECTION_SUBJECT}:${name}`,
      payload: { proposal },
      expiresInMs: LIFETIME_MS.reflection,
    });

  return {
    /** Makes a proposal and asks; returns the answer for the person. */
    async reflect(message: InboundMessage): Promise<string> {
      const { sender, chat } = message;
      if (sender.kind !== 'person') return FAILED;
      const notesOf = async () => (await personOf(message)).notes;
      if (await isAsked(message.id)) return THOUGHT;
      const found = await proposalFor(message, notesOf);
      if (typeof found === 'string') return found;
      await ask(message.id, found, { chat, approvers: idsOf(sender) });
      return THOUGHT;
    },
    /**
     * For the owners' memory, in the chat where an owner is asked; repeating the name has no
     * effect.
     */
    async byItself(name: string, apply: 'ask' | 'write'): Promise<ThoughtOver> {
      const chat = await deps.ownerChat();
      const sender = { kind: 'system', source: 'heartbeat' } as const;
      if (await isAsked(name)) return { kind: 'asked', words: THOUGHT };
      const found = await proposalFor({ chat, sender }, async () => OWNER_TURN.notes);
      if (typeof found === 'string') return { kind: 'left', words: found };
      if (apply === 'write')
        return { kind: 'written', words: OUTCOMES[await reflection.apply(found.proposal)] };
      await ask(name, found, { chat, approvers: 'owners' });
      return { kind: 'asked', words: THOUGHT };
    },
    handler: payloadHandler(KEPT, {
      answer: async ({ proposal }, _asked, { action }) =>
        OUTCOMES[action === 'write' ? await reflection.apply(proposal) : 'left'],
    }),
  };
}

type Kept = { readonly proposal: Proposal };
type Found = Kept & { readonly changes: readonly string[] };

const KEPT = rowShape<Kept>({ proposal: object });

const questionId = (name: string) => `${REFLECTION_SUBJECT}/${name}`;

/** Rows of earlier versions, which kept proposals beside their questions. */
export async function takeOverProposals({ rows, questions }: Kernel): Promise<void> {
  const earlier = rows({ ...jsonRows<Kept>(object), scope: 'reflection', prefix: '' });
  await questions.adopt(earlier, ({ proposal }, name) => ({
    id: questionId(name),
    subject: `${REFLECTION_SUBJECT}:${name}`,
    payload: { proposal },
  }));
}

const OUTCOMES = {
  written: t`Changed. The previous version is kept in memory/backups.`,
  changed: t`The memory has changed since, so I left it as it is. Send /memory reflect again.`,
  left: t`The memory stays as it is.`,
} as const;

function shown(changes: readonly string[]): string {
  const lines = changes.slice(0, SHOWN_LINES).join('\n').replaceAll('```', 'ˋˋˋ');
  const more = changes.length - SHOWN_LINES;
  const text = `\`\`\`diff\n${headOf(lines, SHOWN_CHARS)}\n\`\`\``;
  const isCut = more > 0 || lines.length > SHOWN_CHARS;
  return isCut ? t`${text}\n\nThere is more than fits here.` : text;
}

// A model proposes a new MEMORY.md from the current one and the notes since; a person sees the
// changes before it is written. The old file is kept as a backup, and a concurrent change is never
// overwritten. Untrusted content is never part of it.

type ReflectionDeps = NoteReader & {
  readonly working: Pick<WorkingMemories, 'list' | 'archive'>;
};

/** Calls the model; `maxTokens` limits the answer. */
type AskModel = (system: string, text: string, maxTokens: number) => Promise<string>;

/** `base`: fingerprint of the file it was made from; `used`: working memories that went into it. */
const proposalShape = z.object({
  notes: z.string(),
  base: z.string(),
  text: z.string(),
  used: z.array(z.string()).readonly(),
});
type Proposal = z.infer<typeof proposalShape>;

type Proposed =
  | { readonly kind: 'proposed'; readonly proposal: Proposal; readonly changes: readonly string[] }
  | { readonly kind: 'nothing' | 'useless' };

/** Of daily notes, the newest; of one working memory. */
const MAX_NOTES_CHARS = 30_000;
const MAX_SESSION_CHARS = 4000;
const MAX_SESSIONS = 20;
const SPARE_TOKENS = 2000;
const MAX_ANSWER_TOKENS = 24_000;
const KEPT_BACKUPS = 10;

export type Reflection = ReturnType<typeof createReflection>;

export function createReflection(deps: ReflectionDeps) {
  const { files, workspace, working } = deps;

  async function material(notes: string) {
    const days = await listFiles(deps, notes + MEMORY_FOLDER, (name) => DAY_NOTE.test(name));
    const oldestFirst = days.map(({ path }) => path).sort();
    const texts = await Promise.all(oldestFirst.map((path) => readNote(deps, path)));
    const daily = texts.map((note) => note?.text.trim() ?? '').join('\n\n');
    const learnt = (await readNote(deps, notes + LEARNINGS_FILE))?.text ?? '';
    const completed = await working.list(notes, 'completed');
    const used = completed.filter(({ isForeign }) => !isForeign).slice(-MAX_SESSIONS);
    const found: readonly NoteToReflect[] = [
      { name: 'daily notes', text: keepLastLines(daily, MAX_NOTES_CHARS) },
      { name: 'learnings', text: learningPatterns(readLearnings(learnt)) },
      ...used.map(({ updated, body }) => ({
        name: `a conversation, ${updated.slice(0, 10)}`,
        text: headOf(body, MAX_SESSION_CHARS),
      })),
    ];
    const told = found.filter(({ text }) => text.trim() !== '');
    return { told, used: used.map(({ path }) => path) };
  }

  /** Keeps a fixed number of backups; the oldest is deleted. */
  async function backUp(notes: string, text: string) {
    const folder = notes + BACKUPS_FOLDER;
    const kept = await listFiles(deps, folder, (name) => /^MEMORY-\d+\.md$/.test(name));
    const oldest = [...kept].sort((a, b) => a.modifiedAt - b.modifiedAt)[0];
    const isFull = kept.length >= KEPT_BACKUPS && oldest !== undefined;
    const path = isFull ? oldest.path : `${folder}/MEMORY-${kept.length + 1}.md`;
    await files.write(workspace(), path, text);
  }

  return {
    async propose(notes: string, ask: AskModel): Promise<Proposed> {
      const before = (await readNote(deps, notes + MEMORY_FILE))?.text ?? '';
      const { told, used } = await material(notes);
      if (told.length === 0) return { kind: 'nothing' };
      const maxTokens = Math.min(MAX_ANSWER_TOKENS, textTokens(before) * 2 + SPARE_TOKENS);
      const all = [{ name: MEMORY_FILE, text: before || '(empty)' }, ...told];
      const answer = await ask(REFLECTION_PROMPT, reflectionText(all, newBoundary()), maxTokens);
      const text = proposalOf(before, answer);
      if (text === undefined) return { kind: 'useless' };
      const changes = lineChanges(before, text);
      if (changes.length === 0) return { kind: 'nothing' };
      return { kind: 'proposed', proposal: { notes, base: hashOf(before), text, used }, changes };
    },
    /** Changes when there is something new to reflect on; empty: nothing. */
    async stamp(notes: string): Promise<string> {
      const { told } = await material(notes);
      return told.length === 0 ? '' : hashOf(JSON.stringify(told));
    },
    /** May be repeated. `changed`: the file has changed since, nothing was written. */
    async apply(stored: unknown): Promise<'written' | 'changed'> {
      const { notes, base, text, used } = proposalShape.parse(stored);
      const path = notes + MEMORY_FILE;
      const before = (await readNote(deps, path))?.text ?? '';
      let isWritten = before === text;
      if (!isWritten && hashOf(before) === base) {
        if (before !== '') await backUp(notes, before);
        const change = (content: Buffer | undefined) => {
          isWritten = hashOf(content?.toString('utf8') ?? '') === base;
          return isWritten ? text : undefined;
        };
        await files.update(workspace(), path, change, { maxBytes: MAX_NOTE_BYTES });
      }
      if (!isWritten) return 'changed';
      await working.archive(used);
      return 'written';
    },
  };
}

const hashOf = (text: string) => hash('sha256', text);

// Schedules reflections of the owners' memory: at the configured interval if there is something
// new, and once when the command line requests it.

export const REFLECTION_CLOCK_SCOPE = 'reflection-clock';

export type ReflectionSettings = LiveConfig['config']['memory']['reflection'];

type ReflectionClockDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly state: KeyValueStore;
  /** Changes when another process has written. */
  revision(): number;
  settings(): ReflectionSettings;
  /** Quiet hours apply. */
  isQuiet(): boolean;
  /** Of the material, see `stamp` of the reflection. */
  stamp(): Promise<string>;
  /** Runs once per name; returns the outcome. */
  reflect(name: string, apply: ReflectionSettings['apply']): Promise<ThoughtOver>;
  /** Sends a notice to an owner; once per name. */
  tell(name: string, words: string): Promise<void>;
};

type Slot = { readonly at: number; readonly stamp: string };

const SLOT = rowShape<Slot>({ at: number, stamp: text });

const WANTED = 'wanted';
const LAST = 'last';
const HOUR_MS = 3_600_000;
const LOOK_MS = 60_000;

/** Requests a reflection for when a gateway runs; several requests count as one. */
export const wantReflection = (state: KeyValueStore, now: number) => state.set(WANTED, `${now}`);

export function createReflectionClock(deps: ReflectionClockDeps) {
  const { state, clock, log } = deps;

  async function asWanted(): Promise<void> {
    const wanted = await state.get(WANTED);
    if (wanted === undefined) return;
    const name = `wanted-${wanted}`;
    const { kind, words } = await deps.reflect(name, 'ask');
    if (kind !== 'asked') await deps.tell(name, words);
    await state.delete(WANTED);
  }

  async function asDue(): Promise<void> {
    const { everyHours, apply } = deps.settings();
    if (everyHours === 0 || deps.isQuiet()) return;
    const row = await state.get(LAST);
    const last = row === undefined ? undefined : jsonRow(row, SLOT);
    const now = clock.now();
    // After the clock was set back, the interval starts now.
    const isDue = last === undefined || last.at > now || now - last.at >= everyHours * HOUR_MS;
    if (!isDue) return;
    const stamp = await deps.stamp();
    if (stamp !== last?.stamp) {
      const name = `after-${last?.at ?? 0}`;
      const { kind, words } = await deps.reflect(name, apply);
      if (kind === 'written') await deps.tell(name, words);
      log.info('reflection finished', { kind });
    }
    await state.set(LAST, JSON.stringify({ at: now, stamp }));
  }

  return {
    async run(signal: AbortSignal): Promise<void> {
      let seen: number | undefined;
      while (!signal.aborted) {
        const revision = deps.revision();
        try {
          if (revision !== seen) await asWanted();
          await asDue();
          seen = revision;
        } catch (error) {
          log.warn('reflection failed', { error });
        }
        await clock.sleep(LOOK_MS, signal).catch(() => undefined);
      }
    },
  };
}

/** Runs reflections as configured, without a message. */
export function reflectionTask(
  { live, clock, log, store, bus, owners }: Kernel,
  service: Pick<ReflectionService, 'byItself'>,
  stamp: () => Promise<string>,
): BackgroundTask {
  const thinking = createReflectionClock({
    ...{ clock, log, stamp, state: store.scope(REFLECTION_CLOCK_SCOPE) },
    revision: () => store.revision(),
    settings() {
      const { enabled, reflection } = live.config.memory;
      return enabled ? reflection : { ...reflection, everyHours: 0 };
    },
    isQuiet() {
      const { quietHours, sessions } = live.config;
      return quietUntil(clock.now(), quietHours, sessions.timeZone) !== undefined;
    },
    reflect: (name, apply) => service.byItself(name, apply),
    async tell(name, markdown) {
      const id = messageId(`reflection/${name}/told`);
      await bus.send({ id, chat: await owners.askChat(), markdown });
    },
  });
  return { name: 'reflection', isOnce: true, run: (signal) => thinking.run(signal) };
}
