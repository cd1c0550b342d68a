// Runs pipelines and loops: one part after the other, the voters of a part concurrently. The id of
// each subagent is derived from its place, so that a resumed series finds its subagents and
// continues after the last answer.

import { hash } from 'node:crypto';
import type { TurnInput } from '../../agent/agent.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { AgentEvent, TurnOutcome } from '../../kernel/message/message.ts';
import type { Rows } from '../../kernel/rows.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import { defined } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { aborted, orAborted } from '../../lib/time/clock.ts';
import type { Votes } from './learnt.ts';
import { type Next, nextOf, stepVerdict } from './rules/calibration.ts';
import {
  MAX_SIGNALS,
  type PartAnswer,
  SIGNAL_NOTE,
  SUBAGENT_CHANNEL,
  type SubagentRun,
  signalsIn,
} from './rules/subagent.ts';
import type { VotingConfig } from './settings.ts';
import type { SubagentService } from './subagent-service.ts';
import { isTaintedTurn, signalMessage } from './subagent-service.ts';
import type { SubagentStarts } from './subagent-starts.ts';

type SubagentSeriesDeps = {
  readonly runs: Rows<SubagentRun>;
  readonly service: Pick<SubagentService, 'begin' | 'end' | 'over'>;
  readonly log: Logger;
  /** Of several processes one drives a series; absent: there is only one. */
  readonly lead?: MessageBus['lead'];
  readonly votes: Pick<Votes, 'note'>;
  voting(): VotingConfig;
  readonly childOf: SubagentStarts['childOf'];
};

type Asked = Extract<Next, { readonly kind: 'ask' }>;

export function createSubagentSeries(deps: SubagentSeriesDeps) {
  const { runs, service, log } = deps;
  const driven = new Map<string, Promise<void>>();
  const closing = new AbortController();

  /** Runs one part; false: nothing is left to do here. */
  async function advance(id: string): Promise<boolean> {
    const run = await runs.get(id);
    if (run === undefined || run.state !== 'running') return false;
    const next = nextOf(run, deps.voting());
    if (next.kind === 'over') {
      const isForeign = run.isForeign === true;
      await service.end(id, { state: next.state, result: next.text, isForeign });
      return false;
    }
    const children = next.voters.map((vote) => ({
      ...{ vote, id: `${id}-${run.attempt}-${next.part}-${vote}` },
    }));
    for (const child of children) await begun(run, next, child.id);
    const over = Promise.all(children.map((child) => service.over(child.id)));
    await orAborted(over, closing.signal).catch((error: unknown) => {
      if (!closing.signal.aborted) throw error;
    });
    return !closing.signal.aborted && take(run, next, children);
  }

  async function begun(run: SubagentRun, next: Asked, id: string): Promise<void> {
    if ((await runs.get(id)) !== undefined) return;
    const { profile, part, isVote } = next;
    const rest = defined({ profile, isVote: isVote || undefined });
    const plan = { kind: 'task', task: next.prompt, ...rest } as const;
    await service.begin(await deps.childOf(run, { id, plan, label: `${run.label} ${part}` }));
  }

  /** Keeps the answers of those that succeeded, also where another one failed. */
  async function take(
    { id }: SubagentRun,
    { part, isVote }: Asked,
    children: readonly { readonly id: string; readonly vote: number }[],
  ): Promise<boolean> {
    const heard = await Promise.all(
      children.map(async ({ vote, id: child }) => ({ vote, child: await runs.get(child) })),
    );
    if (heard.some(({ child }) => child?.state === 'running')) return true;
    const isForeign = heard.some(({ child }) => child?.isForeign === true);
    const answers = heard.flatMap(({ vote, child }): readonly PartAnswer[] =>
      child?.state === 'done' ? [{ part, text: child.result ?? '', vote }] : [],
    );
    const foreign = isForeign ? { isForeign } : {};
    const taken = await runs.change(
      id,
      (run) => run && { ...run, ...foreign, answers: [...run.answers, ...answers] },
    );
    if (taken !== undefined && isVote) await counted(taken, part);
    const failed = heard.find(({ child }) => child?.state !== 'done');
    if (failed === undefined) return true;
    const why = `${failed.child?.state ?? 'lost'}: ${failed.child?.result ?? ''}`;
    const result = `Part ${part} gave no answer (${why}). The parts before it are kept: the same id continues there.`;
    await service.end(id, { state: 'failed', result, isForeign });
    return false;
  }

  async function counted({ plan, answers }: SubagentRun, part: number): Promise<void> {
    const step = plan.kind === 'pipeline' ? plan.steps[part - 1] : undefined;
    if (step === undefined) return;
    const votes = answers.flatMap((answer) => (answer.part === part ? [answer.text] : []));
    await deps.votes.note(stepVerdict(step, votes, deps.voting()));
  }

  async function toItsEnd(id: string): Promise<void> {
    try {
      const toEnd = async (signal: AbortSignal) => {
        while (!signal.aborted && (await advance(id)));
      };
      const { lead = (_name, run, signal) => run(signal, 0) } = deps;
      await lead(`series ${id}`, toEnd, closing.signal);
    } catch (error) {
      if (closing.signal.aborted) return;
      log.error('series of subagents stopped', { subagent: id, error });
      const result = error instanceof Error ? error.message : 'it failed';
      await service.end(id, { state: 'failed', result, isForeign: false });
    } finally {
      driven.delete(id);
    }
  }

  return {
    drive({ id }: SubagentRun): void {
      if (closing.signal.aborted || driven.has(id)) return;
      const driving = toItsEnd(id).catch((error) =>
        log.error('series of subagents lost', { subagent: id, error }),
      );
      driven.set(id, driving);
    },
    /** Resolves when the signal aborted and no series runs any more. */
    async run(signal: AbortSignal): Promise<void> {
      await aborted(signal);
      closing.abort();
      await Promise.all(driven.values());
    },
  };
}

// Sends signals of running subagents to the session that asked, as a message that joins a running
// turn. The same text is sent once, and only a few per subagent.

type SubagentSignalsDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly bus: Pick<MessageBus, 'accept'>;
  readonly sessions: Pick<SessionStore, 'turn'>;
  isOn(): boolean;
};

type Turn = AsyncGenerator<AgentEvent, TurnOutcome, void>;

export type SubagentSignals = ReturnType<typeof createSubagentSignals>;

const NAME_CHARS = 16;

export function createSubagentSignals(deps: SubagentSignalsDeps) {
  async function* listen(input: TurnInput, run: SubagentRun, turn: Turn): Turn {
    const told = new Set<string>();
    let text = '';
    try {
      for (;;) {
        const step = await turn.next();
        if (step.done === true) return step.value;
        const event = step.value;
        if (event.type === 'text_delta') text += event.text;
        if (event.type === 'text_discarded') text = '';
        if (event.type === 'tool_started') {
          const news = [...new Set(signalsIn(text))].filter((said) => !told.has(said));
          for (const said of news.slice(0, MAX_SIGNALS - told.size)) {
            told.add(said);
            await report(deps, run, { input, said });
          }
          text = '';
        }
        yield event;
      }
    } finally {
      await turn.return(undefined as never);
    }
  }

  return {
    /** Watches the turn of a subagent for signals; `begin` starts the turn. */
    heard(input: TurnInput, run: SubagentRun, begin: (input: TurnInput) => Turn): Turn {
      const isBelow = run.parent.chat.channel === SUBAGENT_CHANNEL;
      if (!deps.isOn() || isBelow || run.state !== 'running') return begin(input);
      const told = withNote(input);
      return listen(told, run, begin(told));
    },
  };
}

async function report(
  { bus, sessions, clock, log }: SubagentSignalsDeps,
  run: SubagentRun,
  { input, said }: { readonly input: TurnInput; readonly said: string },
): Promise<void> {
  const name = hash('sha256', said).slice(0, NAME_CHARS);
  const isForeign = await isTaintedTurn(sessions, input.session, input.turnId);
  const message = signalMessage(run, { name, said, isForeign }, clock.now());
  await bus.accept([{ kind: 'queue', message }]);
  log.info('subagent reported', { subagent: run.id, parent: run.parent.session });
}

function withNote(input: TurnInput): TurnInput {
  const [first, ...rest] = input.messages;
  const note = [first.message.note, SIGNAL_NOTE].filter((each) => each !== undefined).join('\n\n');
  return { ...input, messages: [{ ...first, message: { ...first.message, note } }, ...rest] };
}
