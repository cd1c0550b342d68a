// Conversations over HTTP: listed, read with their tool calls and costs, and searched as by
// `nanobot sessions`; the life of a message as by `/why`.

import { z } from 'zod';
import { noteCommand } from '../../channels/local-channel.ts';
import type { Trace } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, Refusal, type RouteHandlers, watched } from '../../kernel/http-routes.ts';
import { messageId, type SessionKey, sessionKey } from '../../kernel/message/ids.ts';
import { chatRefOf } from '../../kernel/message/message.ts';
import type {
  ToolEntry,
  TranscriptEntry,
  TurnEndEntry,
  UserEntry,
} from '../../kernel/message/transcript.ts';
import { unwrapped } from '../../kernel/message/untrusted.ts';
import type { EarlierTurn } from '../../kernel/sessions/rules/earlier.ts';
import { defined } from '../../lib/json/json.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { timelineOf } from './rules/timeline.ts';
import {
  answeredBy,
  exportedSession,
  messageTrace,
  type SessionList,
  type SessionTurns,
  type ShownStep,
  type ShownTurn,
  searchHits,
  sessionList,
  sessionTurns,
} from './rules/views.ts';
import type { SessionCare } from './session-care.ts';
import { isOwners, type TakeOver } from './take-over.ts';
import { stepWords } from './why-command.ts';

const PAGE_ROWS = 200;
const MAX_OFFSET = 10_000_000;
const MAX_TURNS = 30;
const MAX_HITS = 100;
const MAX_SHOWN_CHARS = 20_000;
const MAX_KEY_CHARS = 1000;
const MAX_QUERY_CHARS = 500;
const MAX_ANSWER_CHARS = 20_000;
/** What other processes delete is noticed after this time. */
const STALE_MS = 30_000;

const oneSession = z.object({
  session: z
    .string()
    .max(MAX_KEY_CHARS)
    .refine((key) => chatRefOf(key) !== undefined, t`is not the key of a conversation`),
});

const ownAnswer = z.strictObject({
  id: z.string().regex(/^[\w-]{1,64}$/),
  text: z.string().trim().min(1).max(MAX_ANSWER_CHARS),
});

type Part = { readonly before?: number; readonly beforeReset?: number };

type Cost = {
  readonly calls: number;
  readonly spent: { readonly tokens: number; readonly micros: number };
};

/** Of the pages about conversations and runs. */
export type PageDeps = {
  nameOf(session: SessionKey): Promise<string | undefined>;
  /** Of the model calls among the entries; `micros`: millionths of the currency. */
  costOf(entries: readonly TranscriptEntry[]): Cost;
  /** Grows with each change of a conversation. */
  changes(): number;
};

type SessionRoutesDeps = PageDeps & {
  readonly care: Pick<SessionCare, 'page' | 'search' | 'complete' | 'export'>;
  readonly takeOver: Omit<TakeOver, 'stage'>;
};

export function sessionRoutes(kernel: Kernel, deps: SessionRoutesDeps) {
  const { bus, live, sessions, clock, measuring } = kernel;
  const { care, takeOver } = deps;

  async function listed(offset = 0): Promise<SessionList> {
    await care.complete();
    const { sessions: found, total } = await care.page({ offset, limit: PAGE_ROWS });
    const shown = found.map(async ({ key, messages, updatedAt, problem }) => ({
      ...{ key, messages, updatedAt },
      channel: chatRefOf(key)?.channel ?? '',
      isTakenOver: await takeOver.isTakenOver(key),
      ...defined({ name: (await deps.nameOf(key)) || undefined, problem }),
    }));
    return { sessions: await Promise.all(shown), total };
  }

  async function turnsOf(key: string, of: Part = {}): Promise<SessionTurns> {
    const session = sessionKey(key);
    const { turns, ...around } = await sessions.earlier(session, {
      ...{ maxTurns: MAX_TURNS, withUndone: true },
      ...of,
    });
    return {
      ...{ key, ...around, currency: live.config.limits.budget.currency },
      ...defined({
        name: (await deps.nameOf(session)) || undefined,
        answeredBy: await answeredByNow(session),
      }),
      turns: turns.map((turn) => turnView(turn, deps.costOf(turn.entries))),
    };
  }

  async function answeredByNow(session: SessionKey): Promise<'agent' | 'owner' | undefined> {
    if (await takeOver.isTakenOver(session)) return 'owner';
    return (await takeOver.isPossible(session)) ? 'agent' : undefined;
  }

  const note = (...words: readonly string[]) => noteCommand(measuring.audit, 'sessions', ...words);

  return {
    'GET /api/v1/sessions': endpoint(
      { summary: t`The newest ${PAGE_ROWS} conversations`, answer: sessionList },
      () => listed(),
    ),
    'GET /api/v1/sessions/from/:offset': endpoint(
      {
        summary: t`${PAGE_ROWS} conversations from this place on, newest first`,
        params: z.object({ offset: z.coerce.number().int().min(0).max(MAX_OFFSET) }),
        answer: sessionList,
      },
      ({ offset }) => listed(offset),
    ),
    'GET /api/v1/sessions/events': watched(
      {
        summary: t`The newest ${PAGE_ROWS} conversations, now and after each change`,
        answer: sessionList,
      },
      clock,
      sinceChange(clock, deps, () => listed()),
    ),
    'GET /api/v1/sessions/:session/events': watched(
      {
        summary: t`The newest turns of a conversation, now and after each change`,
        ...{ params: oneSession, answer: sessionTurns },
      },
      clock,
      sinceChange(
        clock,
        deps,
        ({ session }: z.output<typeof oneSession>) => turnsOf(session),
        ({ session }) => note('show', session),
      ),
    ),
    'GET /api/v1/sessions/:session/turns/:before': endpoint(
      {
        summary: t`The turns of a conversation before a turn, since its last reset`,
        params: oneSession.extend({ before: z.coerce.number().int().min(0) }),
        answer: sessionTurns,
      },
      ({ session, before }) => turnsOf(session, { before }),
    ),
    'GET /api/v1/sessions/:session/before-reset/:beforeReset/turns/:before': endpoint(
      {
        summary: t`The turns before a turn, of the part of a conversation that this reset ended`,
        params: oneSession.extend({
          beforeReset: z.coerce.number().int().min(0),
          before: z.coerce.number().int().min(0),
        }),
        answer: sessionTurns,
      },
      ({ session, ...part }) => turnsOf(session, part),
    ),
    'GET /api/v1/sessions/:session/export': endpoint(
      {
        summary: t`A whole conversation as text, also what is archived`,
        ...{ params: oneSession, answer: exportedSession },
      },
      async ({ session }) => {
        await care.complete();
        note('export', session);
        const pieces = await Array.fromAsync(care.export(sessionKey(session), 'md'));
        return { name: `${session.replaceAll(/[^\w.-]+/g, '-')}.md`, text: pieces.join('') };
      },
    ),
    'POST /api/v1/sessions/search': endpoint(
      {
        summary: t`Search the texts of all conversations`,
        body: z.strictObject({ words: z.string().trim().min(1).max(MAX_QUERY_CHARS) }),
        answer: searchHits,
      },
      async (_params, { words }) => {
        await care.complete();
        note('search');
        let failures = 0;
        const unreadable = () => {
          failures += 1;
        };
        const hits = await Array.fromAsync(care.search(words, { limit: MAX_HITS, unreadable }));
        return { hits, unreadable: failures };
      },
    ),
    'POST /api/v1/sessions/:session/take-over': endpoint(
      {
        summary: t`Answer in the agent's place: it records what the person writes and is silent`,
        ...{ params: oneSession, answer: answeredBy },
      },
      async ({ session }) => {
        await takeOver.take(sessionKey(session));
        note('take-over', session);
        return { answeredBy: 'owner' as const };
      },
    ),
    'POST /api/v1/sessions/:session/hand-back': endpoint(
      {
        summary: t`Let the agent answer from the next message on`,
        ...{ params: oneSession, answer: answeredBy },
      },
      async ({ session }) => {
        await takeOver.handBack(sessionKey(session));
        note('hand-back', session);
        return { answeredBy: 'agent' as const };
      },
    ),
    'POST /api/v1/sessions/:session/answers': endpoint(
      {
        summary: t`Send a text to the person of a conversation that was taken over, once per id`,
        ...{ params: oneSession, body: ownAnswer, answer: answeredBy },
      },
      async ({ session }, { id, text }) => {
        await takeOver.answer(sessionKey(session), id, text);
        note('answer', session);
        return { answeredBy: 'owner' as const };
      },
    ),
    'GET /api/v1/messages/:message/trace': endpoint(
      {
        summary: t`The life of a message, from its arrival to the delivery of its answers`,
        params: z.object({ message: z.string().min(1).max(MAX_KEY_CHARS) }),
        answer: messageTrace,
      },
      async ({ message }) => {
        const trace = await bus.trace(messageId(message));
        if (trace === undefined) {
          throw new Refusal(
            404,
            'message_unknown',
            t`The record of this message is not stored now.`,
          );
        }
        const { session, turnId, answers } = trace;
        const isKept = session !== undefined && turnId !== undefined;
        const entries = isKept ? await sessions.turn(session, turnId) : [];
        return {
          timeline: [...timelineOf(trace, entries)],
          ...{ message, session, ...lifeView(trace), answers: answers.map(lifeView) },
          ...defined({ turn: turnId }),
        };
      },
    ),
  } satisfies RouteHandlers;
}

/** Reads again only after a change. */
function sinceChange<Question, View>(
  clock: Clock,
  { changes }: PageDeps,
  read: (question: Question) => Promise<View>,
  begun: (question: Question) => void = () => undefined,
) {
  const last = new WeakMap<object, { change: number; at: number; view: View }>();
  return async (question: Question & object): Promise<View> => {
    const known = last.get(question);
    const [change, at] = [changes(), clock.now()];
    if (known?.change === change && at - known.at < STALE_MS) return known.view;
    if (known === undefined) begun(question);
    const view = await read(question);
    last.set(question, { change, at, view });
    return view;
  };
}

function turnView({ turn, entries, isUndone }: EarlierTurn, { calls, spent }: Cost): ShownTurn {
  const end = entries.findLast((entry) => entry.role === 'turn_end');
  // A text without a question has no turn of the agent.
  const isAsked = entries.some((entry) => entry.role !== 'user' || entry.seq !== undefined);
  const remarked = isAsked ? undefined : 'answered';
  const used = entries.flatMap((entry) => (entry.role === 'assistant' ? [entry.model] : []));
  return {
    ...{ turn, steps: stepsOf(entries), models: [...new Set(used)] },
    ...{ calls, tokens: spent.tokens, micros: spent.micros },
    ...defined({ isUndone, outcome: end?.role === 'turn_end' ? outcomeOf(end) : remarked }),
  };
}

const outcomeOf = ({ outcome, isTakenOver }: TurnEndEntry) =>
  isTakenOver === true ? 'recorded' : outcome;

function stepsOf(entries: readonly TranscriptEntry[]): ShownStep[] {
  const results = new Map<string, ToolEntry>();
  for (const entry of entries) if (entry.role === 'tool') results.set(entry.callId, entry);
  const called = new Set<string>(
    entries.flatMap((entry) =>
      entry.role === 'assistant' ? entry.toolCalls.map((call) => call.id) : [],
    ),
  );
  const said = new Set<string>();
  return entries.flatMap((entry): ShownStep[] => {
    if (entry.role === 'user') return [saidBefore(entry)];
    // The texts that were sent are in the turn's end; those of a running turn stand for themselves.
    if (entry.role === 'turn_end') {
      const missing = entry.answers.filter((answer) => !said.has(answer.trim()));
      return missing.map((text) => saidByAgent(text, entry.at));
    }
    // An approved call runs in the turn after the one that asked for it.
    if (entry.role === 'tool' && !called.has(entry.callId))
      return [toolStep({ id: entry.callId, name: entry.name, arguments: '' }, entry.at, entry)];
    if (entry.role !== 'assistant') return [];
    said.add(entry.text.trim());
    const text =
      entry.text === '' || entry.isDraft === true ? [] : [saidByAgent(entry.text, entry.at)];
    const calls = entry.toolCalls.map((call) => toolStep(call, entry.at, results.get(call.id)));
    return [...text, ...calls];
  });
}

function saidBefore(entry: UserEntry): ShownStep {
  const by = isOwners(entry) ? 'owner' : isAnnouncement(entry) ? 'agent' : 'person';
  const text = by === 'person' ? entry.text : unwrapped(entry.text);
  return {
    ...{ kind: 'said', by, at: entry.at, text: headOf(text, MAX_SHOWN_CHARS) },
    ...{ files: entry.media?.length ?? 0, isUntrusted: entry.isForeign === true },
    ...defined({ message: entry.messageId }),
  };
}

/** What a job or a notice sent, recorded so that it can be answered. */
const isAnnouncement = ({ seq, text }: UserEntry) => seq === undefined && unwrapped(text) !== text;

const saidByAgent = (text: string, at: number): ShownStep => ({
  ...{ kind: 'said', by: 'agent', at, text: headOf(text, MAX_SHOWN_CHARS) },
  ...{ files: 0, isUntrusted: false },
});

const toolStep = (
  call: { readonly id: string; readonly name: string; readonly arguments: string },
  at: number,
  result: ToolEntry | undefined,
): ShownStep => ({
  ...{ kind: 'tool', at, call: call.id, name: call.name },
  arguments: headOf(call.arguments, MAX_SHOWN_CHARS),
  ...{ status: result?.status ?? 'running', isUntrusted: result?.isForeign === true },
  ...defined({
    tookMs: result && Math.max(0, result.at - at),
    result: (result && headOf(result.whole ?? result.text, MAX_SHOWN_CHARS)) || undefined,
  }),
});

const lifeView = ({ state, steps }: Pick<Trace, 'state' | 'steps'>) => ({
  state,
  steps: steps.map((step) => ({ ...step, text: stepWords(step) })),
});
