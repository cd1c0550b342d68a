// Reflection: a model proposes a new MEMORY.md from it and what was noted since; a person sees what
// would change before it is written. The file as it was is kept, and nothing is written over a change
// made meanwhile. What others wrote never goes in.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { MEMORY_FILE } from '../../agent/rules/prompt.ts';
import { textTokens } from '../../agent/rules/tokens.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { headOf, keepLastLines } from '../../lib/text/cut.ts';
import { LEARNINGS_FILE } from './files.ts';
import {
  BACKUPS_FOLDER,
  DAY_NOTE,
  listFiles,
  MAX_NOTE_BYTES,
  MEMORY_FOLDER,
  type NoteReader,
  readNote,
} from './note-files.ts';
import { learningPatterns, readLearnings } from './rules/memory-notes.ts';
import {
  lineChanges,
  type NoteToReflect,
  proposalOf,
  REFLECTION_PROMPT,
  reflectionText,
} from './rules/reflection.ts';
import type { WorkingMemories } from './working-memory.ts';

export type ReflectionDeps = NoteReader & {
  readonly working: Pick<WorkingMemories, 'list' | 'archive'>;
};

/** Asks the model, with at most so many tokens of answer. */
export type AskModel = (system: string, text: string, maxTokens: number) => Promise<string>;

/** `base`: of the file that it was made from; `used`: working memories that went into it. */
const proposalShape = z.object({
  notes: z.string(),
  base: z.string(),
  text: z.string(),
  used: z.array(z.string()).readonly(),
});
export type Proposal = z.infer<typeof proposalShape>;

export type Proposed =
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

  /** In a ring: the oldest gives way. */
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
    /** Another one where there is something else to think over; empty: nothing. */
    async stamp(notes: string): Promise<string> {
      const { told } = await material(notes);
      return told.length === 0 ? '' : hashOf(JSON.stringify(told));
    },
    /** May be repeated. `changed`: the file is another one by now, nothing was written. */
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

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');
