// The pattern of a tool that answers a plain question through other tools: it picks the fitting
// ones, asks them in parallel, and joins their results, each under its name. A tool that may not or
// cannot answer is named, and the others answer all the same.

import { z } from 'zod';
import type { ToolAccess } from '../../kernel/access/rights.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { headOf } from '../../lib/text/cut.ts';
import { withDeadline } from '../../lib/time/clock.ts';
import { readDescription, type Tool, type ToolContext } from '../tool.ts';
import { describeFailure, QUERY_NAMES, type ToolFailure } from '../toolbox.ts';

/** A tool that can be asked. */
export type SubTool<Name extends string> = {
  readonly name: Name;
  /** The name of the tool behind it, if it has one. */
  readonly tool?: string;
  readonly access: ToolAccess;
  isAvailable(): boolean;
  /** Empty if it found nothing. @throws ToolError */
  ask(question: string, context: ToolContext): Promise<string>;
};

type MetaToolSetup<Name extends string> = {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly names: readonly [Name, ...Name[]];
  readonly subTools: readonly SubTool<Name>[];
  /** Which available tools fit the question. */
  route(question: string, available: readonly Name[]): readonly Name[];
  /** Which to ask next if those found nothing; absent: none. */
  widen?(question: string, available: readonly Name[], asked: readonly Name[]): readonly Name[];
  readonly maxResultChars: () => number;
};

const MAX_QUESTION_CHARS = 500;
const SUB_TIMEOUT_MS = 20_000;
const FRAME_CHARS = 300;
const MIN_PART_CHARS = 500;

type Input<Name extends string> = { query: string; sources?: Name[] | undefined };

export function createMetaTool<Name extends string>(setup: MetaToolSetup<Name>): Tool<Input<Name>> {
  const { name, aliases, names, subTools } = setup;
  const input: z.ZodType<Input<Name>> = z.object({
    query: z
      .string()
      .trim()
      .min(1)
      .max(MAX_QUESTION_CHARS)
      .describe('The question, in plain words.'),
    sources: z
      .array(z.enum(names))
      .optional()
      .describe('Ask only these; default: those that fit the question.'),
  }) as never;
  return {
    name,
    aliases,
    parameterAliases: { query: ['question', ...QUERY_NAMES], sources: ['source', 'in'] },
    ...readDescription(name),
    access: 'read',
    taints: true,
    input,
    isAvailable: () => subTools.some((sub) => sub.isAvailable()),
    describe: ({ query }) => query,
    async run({ query, sources }, context) {
      const usable = subTools.filter((sub) => sub.isAvailable() && mayAsk(sub, context));
      const known = usable.map((sub) => sub.name);
      const wanted = sources ?? setup.route(query, known);
      const chosen = usable.filter((sub) => wanted.includes(sub.name));
      const absent = (sources ?? []).filter((source) => !known.includes(source));
      if (chosen.length === 0) throw nothingToAsk(known, absent);
      const ask = (some: typeof usable) =>
        Promise.all(some.map((sub) => answerOf(sub, query, context)));
      const answers = await ask(chosen);
      // If the model named sources, only those are asked.
      for (const asked = [...wanted]; sources === undefined && !answers.some(isFound); ) {
        const next = setup.widen?.(query, known, asked) ?? [];
        if (next.length === 0) break;
        answers.push(...(await ask(usable.filter((sub) => next.includes(sub.name)))));
        asked.push(...next);
      }
      const failures = answers.filter((answer) => answer.kind === 'failed');
      if (failures.length === answers.length) throw allFailed(failures);
      const room = Math.max(MIN_PART_CHARS, setup.maxResultChars() - FRAME_CHARS);
      return textOf(
        answers,
        Math.floor(room / Math.max(1, answers.filter(isFound).length)),
        absent,
      );
    },
  };
}

/** What needs an approval is not called as part of a search. */
const mayAsk = (
  { access, tool }: Pick<SubTool<string>, 'access' | 'tool'>,
  { rights, mayUse }: ToolContext,
) => rights[access] === 'free' && (tool === undefined || mayUse?.(tool) !== false);

type Answer =
  | { readonly kind: 'found'; readonly from: string; readonly text: string }
  | { readonly kind: 'nothing'; readonly from: string }
  | Failed;
const isFound = ({ kind }: Answer) => kind === 'found';
type Failed = { readonly kind: 'failed'; readonly from: string; readonly failure: ToolFailure };

const late = () => new ToolError('timeout', `no answer within ${SUB_TIMEOUT_MS / 1000} seconds`);

async function answerOf(
  { name: from, ask }: SubTool<string>,
  question: string,
  context: ToolContext,
): Promise<Answer> {
  // One result without untrusted content says nothing about the others.
  const { own: _own, ...asked } = context;
  const work = (signal: AbortSignal) => ask(question, { ...asked, signal });
  try {
    const said = await withDeadline(context.clock, SUB_TIMEOUT_MS, late, context.signal, work);
    const text = said.trim();
    return text === '' ? { kind: 'nothing', from } : { kind: 'found', from, text };
  } catch (error) {
    context.signal.throwIfAborted();
    return { kind: 'failed', from, failure: describeFailure(error) };
  }
}

function textOf(answers: readonly Answer[], maxChars: number, absent: readonly string[]): string {
  const parts = answers.flatMap((answer) =>
    answer.kind === 'found' ? [`## ${answer.from}\n${shortened(answer.text, maxChars)}`] : [],
  );
  const nothing = answers.flatMap((answer) => (answer.kind === 'nothing' ? [answer.from] : []));
  const failures = answers.flatMap((answer) =>
    answer.kind === 'failed' ? [`[${answer.from}: ${answer.failure.text}]`] : [],
  );
  return [
    ...parts,
    ...(nothing.length === 0 ? [] : [`[nothing found in: ${nothing.join(', ')}]`]),
    ...failures,
    ...(absent.length === 0 ? [] : [`[not available here: ${absent.join(', ')}]`]),
  ].join('\n\n');
}

function shortened(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const omitted = (text.length - maxChars).toLocaleString('en-US');
  return `${headOf(text, maxChars)}\n[truncated, ${omitted} characters omitted: ask this source by its own tool]`;
}

function nothingToAsk(known: readonly string[], absent: readonly string[]): ToolError {
  const named = absent.length === 0 ? '' : `${absent.join(', ')} not available here; `;
  return new ToolError('invalid_arguments', `${named}there are: ${known.join(', ') || 'none'}`);
}

/** A problem with the question itself is reported once, not for each tool. */
function allFailed(answers: readonly Failed[]): ToolError {
  const [first] = answers;
  const isAsked = ({ failure }: Failed) =>
    failure.kind === 'invalid_arguments' && failure.message === first?.failure.message;
  if (first !== undefined && answers.every(isAsked)) {
    return new ToolError('invalid_arguments', first.failure.message);
  }
  const why = answers.map(({ from, failure }) => `${from}: ${failure.text}`);
  return new ToolError('execution', `no source answered (${why.join('; ')})`);
}
