// The text of MEMORY.md: facts as dated bullets under one heading, each only once. The text of a
// day's notes: bullets with the time of day.

import { z } from 'zod';
import { workingMemoryNote } from '../../../agent/rules/context-marks.ts';
import { CHARS_PER_TOKEN, workingTokens } from '../../../agent/rules/tokens.ts';
import { parseJson } from '../../../lib/json/json.ts';
import { headOf } from '../../../lib/text/cut.ts';

const HEADING = '## Remembered';
const DATE_PREFIX = /^(?:\[\d{4}-\d{2}-\d{2}\]|\d{2}:\d{2})\s*/;
const BULLET = /^\s*[-*+]\s+/;

/** The text with the fact added at the end of its section; undefined when it stands there already. */
export function addFact(text: string, fact: string, day: string): string | undefined {
  const line = oneLine(fact);
  const lines = text.split('\n');
  const wanted = comparable(line);
  if (lines.some((existing) => BULLET.test(existing) && comparable(existing) === wanted)) {
    return undefined;
  }
  const bullet = `- [${day}] ${line}`;
  const heading = lines.findIndex((existing) => existing.trim() === HEADING);
  if (heading < 0) {
    const before = text.trimEnd();
    return `${before === '' ? '# Memory' : before}\n\n${HEADING}\n\n${bullet}\n`;
  }
  return insertBullet(lines, heading, bullet);
}

/** The notes of a day with one more; undefined when it stands there already. `time` as `HH:MM`. */
export function addNote(
  text: string,
  note: string,
  { day, time }: { readonly day: string; readonly time: string },
): string | undefined {
  const line = oneLine(note);
  const wanted = comparable(line);
  const isKnown = (each: string) => BULLET.test(each) && comparable(each) === wanted;
  if (text.split('\n').some(isKnown)) return undefined;
  const before = text.trim() === '' ? `# ${day}\n` : text.trimEnd();
  return `${before}\n- ${time} ${line}\n`;
}

function insertBullet(lines: readonly string[], heading: number, bullet: string): string {
  const following = lines.findIndex((line, index) => index > heading && /^#{1,2}\s/.test(line));
  const sectionEnd = following < 0 ? lines.length : following;
  const last = lines.findLastIndex((line, index) => index < sectionEnd && line.trim() !== '');
  const gap = last === heading ? [''] : [];
  const rest = lines.slice(last + 1);
  const isAtEnd = rest.every((line) => line.trim() === '');
  return [...lines.slice(0, last + 1), ...gap, bullet, ...(isAtEnd ? [''] : rest)].join('\n');
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();

function comparable(line: string): string {
  const bare = line.replace(BULLET, '').replace(DATE_PREFIX, '');
  return oneLine(bare)
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[.!]+$/, '');
}

// What came of the agent's work, a line each, and the patterns in it: which tools fail and how, what
// people corrected. Names and kinds only where others may have had a say in the words.

const learning = z.object({
  timestamp: z.string(),
  kind: z.enum(['correction', 'reaction', 'tool']),
  tool_name: z.string().optional(),
  succeeded: z.boolean(),
  context: z.string(),
  error: z.string().optional(),
});
export type LearningLine = z.infer<typeof learning>;

const MAX_CONTEXT_CHARS = 200;
const MAX_ERROR_CHARS = 200;
const KEPT_LINES = 500;
const KEPT_MS = 30 * 86_400_000;
/** Of these the patterns are taken. */
const PATTERN_LINES = 50;
const MIN_USES = 2;
const SHOWN_ERRORS = 3;
const SHOWN_WORDS = 5;

export function readLearnings(text: string): readonly LearningLine[] {
  return text.split('\n').flatMap((line) => {
    const parsed = learning.safeParse(parseJson(line));
    return parsed.success ? [parsed.data] : [];
  });
}

/** The file with these added, without what is too old and what cannot be read. */
export function addLearnings(text: string, added: readonly LearningLine[], now: number): string {
  const recent = readLearnings(text).filter(
    ({ timestamp }) => now - Date.parse(timestamp) < KEPT_MS,
  );
  const lines = [...recent, ...added.map(shortened)].slice(-KEPT_LINES);
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

const shortened = ({ context, error, ...rest }: LearningLine): LearningLine => ({
  ...rest,
  context: headOf(context.replace(/\s+/g, ' ').trim(), MAX_CONTEXT_CHARS),
  ...(error === undefined ? {} : { error: headOf(error, MAX_ERROR_CHARS) }),
});

/** Empty where there is no pattern. */
export function learningPatterns(lines: readonly LearningLine[]): string {
  const recent = lines.slice(-PATTERN_LINES);
  const byTool = Map.groupBy(
    recent.filter(({ kind }) => kind === 'tool'),
    ({ tool_name }) => tool_name ?? '',
  );
  const tools = [...byTool].flatMap(([name, uses]) => {
    const failed = uses.filter(({ succeeded }) => !succeeded);
    if (uses.length < MIN_USES || failed.length === 0) return [];
    const why = failed.slice(-SHOWN_ERRORS).map(({ error }) => error ?? 'failed');
    return [`- ${name}: ${failed.length} of ${uses.length} noted uses failed (${why.join('; ')})`];
  });
  const said = recent.filter(({ kind }) => kind === 'correction').slice(-SHOWN_WORDS);
  const disliked = recent.filter(({ kind }) => kind === 'reaction').length;
  return [
    ...said.map(({ context }) => `- corrected: ${context}`),
    ...(disliked === 0 ? [] : [`- answers that were disliked: ${disliked}`]),
    ...tools,
  ].join('\n');
}

// The text of `SESSION_{hash}.md`, the working memory of one conversation: front matter that tells its
// state, and what the last summary said.

export type WorkingStatus = 'active' | 'completed' | 'archived';

export type WorkingMemory = {
  readonly sessionKey: string;
  /** ISO 8601 in UTC, as is `updated`. */
  readonly created: string;
  readonly updated: string;
  readonly status: WorkingStatus;
  /** Number of the last turn that it tells of. */
  readonly lastUpdatedTurn: number;
  /** It tells what others wrote. */
  readonly isForeign: boolean;
  readonly body: string;
};

/** What the model is told of it. */
export type WorkingNote = Pick<WorkingMemory, 'body' | 'isForeign'> & {
  /** Below the workspace. */
  readonly path: string;
};

/** Within its share of the window. */
export function workingNoteText({ body, path }: WorkingNote, contextTokens: number): string {
  return workingMemoryNote(body.trim(), path, workingTokens(contextTokens) * CHARS_PER_TOKEN);
}

const FRONT_MATTER = /^---\n([\s\S]*?)\n---\n+([\s\S]*)$/;
const STATUSES: readonly string[] = ['active', 'completed', 'archived'];

export function workingMemoryText(memory: WorkingMemory): string {
  return [
    '---',
    `session_key: ${JSON.stringify(memory.sessionKey)}`,
    `created: ${memory.created}`,
    `updated: ${memory.updated}`,
    `status: ${memory.status}`,
    `last_updated_turn: ${memory.lastUpdatedTurn}`,
    ...(memory.isForeign ? ['foreign: true'] : []),
    '---',
    '',
    `${memory.body.trim()}\n`,
  ].join('\n');
}

/** Undefined where it is something else, e.g. an extract of a session file. */
export function readWorkingMemory(text: string): WorkingMemory | undefined {
  const [, head = '', body = ''] = FRONT_MATTER.exec(text) ?? [];
  const fields = new Map(
    head.split('\n').map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
  const status = fields.get('status') ?? '';
  const key = keyFrom(fields.get('session_key') ?? '');
  if (!STATUSES.includes(status) || key === undefined) return undefined;
  return {
    sessionKey: key,
    created: fields.get('created') ?? '',
    updated: fields.get('updated') ?? '',
    status: status as WorkingStatus,
    lastUpdatedTurn: Number(fields.get('last_updated_turn') ?? 0),
    isForeign: fields.get('foreign') === 'true',
    body,
  };
}

function keyFrom(quoted: string): string | undefined {
  try {
    const value: unknown = JSON.parse(quoted);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
