// What came of the agent's work, a line each, and the patterns in it: which tools fail and how, what
// people corrected. Names and kinds only where others may have had a say in the words.

import { z } from 'zod';
import { parseJson } from '../../../lib/json/json.ts';
import { headOf } from '../../../lib/text/cut.ts';

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
