// Workflows and subagents over HTTP: one list, from which a tree can be drawn, and stopping a run with
// all that it started, by the functions behind `/kill` and `/workflow cancel`.

import { z } from 'zod';
import { noteCommand } from '../../channels/local-channel.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, Refusal, type RouteHandlers, watched } from '../../kernel/http-routes.ts';
import { sessionKey } from '../../kernel/message/ids.ts';
import { chatRefOf, sessionKeyOf } from '../../kernel/message/message.ts';
import type { TranscriptEntry } from '../../kernel/message/transcript.ts';
import { RecentMap } from '../../lib/async.ts';
import { defined } from '../../lib/json/json.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { jobChat } from '../schedule/settings.ts';
import {
  SUBAGENT_CHANNEL,
  type SubagentRun,
  type Subagents,
  subagentSession,
} from '../subagents/index.ts';
import { WORKFLOW_CHANNEL, type WorkflowRun, type Workflows } from '../workflows/index.ts';
import { branchOf, runList, type ShownRun, stoppedRuns } from './rules/runs.ts';
import type { PageDeps } from './session-routes.ts';

const MAX_ENDED = 100;
const MAX_TEXT_CHARS = 8000;
const MAX_CALL_CHARS = 200;
const MAX_ID_CHARS = 100;
const MAX_TURNS = 100;

/** `spent`: of a run itself, without those below it. */
type Progress = Pick<ReturnType<PageDeps['costOf']>, 'spent'> & { readonly doing: string };

type RunRoutesDeps = PageDeps & {
  readonly subagents: Pick<Subagents['service'], 'all' | 'kill'>;
  readonly workflows: Pick<Workflows['service'], 'all' | 'cancel'>;
};

export function runRoutes(
  { live, sessions, clock, measuring: { audit } }: Kernel,
  deps: RunRoutesDeps,
) {
  const progressOf = createProgress(sessions, deps);

  async function view() {
    const [subagents, workflows] = await Promise.all([deps.subagents.all(), deps.workflows.all()]);
    const kept = newest([...subagents, ...workflows]);
    const shown = kept.map(async (run) => {
      const made = 'workflow' in run ? workflowView(run) : subagentView(run, await progressOf(run));
      const name = await deps.nameOf(sessionKey(made.session));
      return name === undefined ? made : { ...made, name };
    });
    return { currency: live.config.limits.budget.currency, runs: await Promise.all(shown) };
  }

  /** Its own end first: what it would start meanwhile is refused. */
  async function stopBranch(id: string): Promise<readonly string[]> {
    const { runs } = await view();
    const run = runs.find((each) => each.id === id);
    if (run === undefined) throw new Refusal(404, 'run_unknown', t`There is no run ${id}.`);
    if (run.endedAt === undefined && !run.canStop) {
      throw new Refusal(409, 'part_of_series', t`It is a part of a series: stop the series.`);
    }
    const branch = branchOf(id, runs).flatMap((each) => runs.find((one) => one.id === each) ?? []);
    const running = branch.filter(({ canStop }) => canStop);
    if (running.length === 0) throw new Refusal(409, 'not_running', t`It had already ended.`);
    for (const { id: each, kind } of running) {
      if (kind === 'workflow') await deps.workflows.cancel(each);
      else await deps.subagents.kill(each, 'all');
      const words = kind === 'workflow' ? ['workflow', 'cancel', each] : ['kill', each];
      noteCommand(audit, ...words);
    }
    return running.map((each) => each.id);
  }

  return {
    'GET /api/v1/runs': endpoint(
      { summary: t`Workflows and subagents with their parents, newest first`, answer: runList },
      view,
    ),
    'GET /api/v1/runs/events': watched(
      {
        summary: t`Workflows and subagents, now and after each change`,
        answer: runList,
      },
      clock,
      view,
    ),
    'POST /api/v1/runs/:id/stop': endpoint(
      {
        summary: t`Stop a workflow or subagent with all that it started`,
        params: z.object({ id: z.string().min(1).max(MAX_ID_CHARS) }),
        answer: stoppedRuns,
      },
      async ({ id }) => ({ stopped: [...(await stopBranch(id))] }),
    ),
  } satisfies RouteHandlers;
}

type AnyRun = SubagentRun | WorkflowRun;

function newest(runs: readonly AnyRun[]): readonly AnyRun[] {
  const sorted = runs.toSorted((one, other) => other.startedAt - one.startedAt);
  const ended = sorted.filter(({ endedAt }) => endedAt !== undefined).slice(0, MAX_ENDED);
  const shown = new Set(ended);
  return sorted.filter((run) => run.endedAt === undefined || shown.has(run));
}

/** The cost of an ended subagent is read once, that of a running one after each change. */
function createProgress(sessions: Kernel['sessions'], { costOf, changes }: PageDeps) {
  const known = new RecentMap<string, { readonly as: string; readonly progress: Progress }>(
    2 * MAX_ENDED,
  );
  return async ({ id, state, attempt, plan }: SubagentRun): Promise<Progress | undefined> => {
    if (plan.kind !== 'task') return undefined;
    const as = [state, attempt, state === 'running' ? changes() : ''].join();
    const last = known.get(id);
    if (last?.as === as) return last.progress;
    const { turns } = await sessions.earlier(subagentSession(id), { maxTurns: MAX_TURNS });
    const entries = turns.flatMap((turn) => turn.entries);
    const progress = { spent: costOf(entries).spent, doing: doingNow(entries) };
    known.set(id, { as, progress });
    return progress;
  };
}

function doingNow(entries: readonly TranscriptEntry[]): string {
  const over = new Set(entries.flatMap((entry) => (entry.role === 'tool' ? [entry.callId] : [])));
  const called = entries.flatMap((entry) => (entry.role === 'assistant' ? entry.toolCalls : []));
  const call = called.find(({ id }) => !over.has(id));
  if (call === undefined) return t`The model is answering`;
  return headOf(`${call.name} ${call.arguments}`, MAX_CALL_CHARS);
}

function subagentView(run: SubagentRun, progress: Progress | undefined): ShownRun {
  const { id, label, plan, parent, series, state, startedAt, endedAt, result } = run;
  const { spent = { tokens: 0, micros: 0 }, doing = seriesDoing(run) } = progress ?? {};
  const isRunning = state === 'running';
  const above = series ?? runAbove(parent.session);
  return {
    ...{ id, kind: plan.kind, label, state, startedAt, session: parent.session },
    ...{ tokens: spent.tokens, micros: spent.micros },
    ...defined({
      ...{ parent: above, endedAt, doing: isRunning && doing !== '' ? doing : undefined },
      result: (result && headOf(result, MAX_TEXT_CHARS)) || undefined,
    }),
    asked: headOf(plan.kind === 'pipeline' ? stepTexts(plan) : plan.task, MAX_TEXT_CHARS),
    canStop: isRunning && series === undefined,
  };
}

const stepTexts = ({ steps }: { readonly steps: readonly { readonly prompt: string }[] }) =>
  steps.map(({ prompt }, at) => `${at + 1}. ${prompt}`).join('\n');

function seriesDoing({ plan, answers }: SubagentRun): string {
  const count = answers.length;
  if (plan.kind === 'pipeline') return t`${count} answers so far, of ${plan.steps.length} steps`;
  return plan.kind === 'loop' ? t`${count} answers so far, at most ${plan.rounds} rounds` : '';
}

function workflowView(run: WorkflowRun): ShownRun {
  const { id, workflow, starter, state, startedAt, endedAt, result, status } = run;
  const { home } = starter;
  const session = home.kind === 'chat' ? home.session : sessionKeyOf(jobChat(home.job));
  const { underWay, number, tokens, micros, values } = state;
  const step = underWay?.step ?? '';
  const doing =
    status === 'waiting' ? t`Waits for an approval at ${step}` : t`Step ${number}: ${step}`;
  const isRunning = endedAt === undefined;
  return {
    ...{ id, kind: 'workflow', label: workflow, state: status, startedAt, session },
    ...{ tokens, micros, canStop: isRunning },
    ...defined({
      ...{ parent: runAbove(session), endedAt, doing: isRunning && underWay ? doing : undefined },
      result: (result && headOf(result, MAX_TEXT_CHARS)) || undefined,
    }),
    asked: headOf(JSON.stringify(values['input'] ?? {}), MAX_TEXT_CHARS),
  };
}

/** The id of the run whose turn started it. */
function runAbove(session: string): string | undefined {
  const chat = chatRefOf(session);
  const isRun = chat?.channel === SUBAGENT_CHANNEL || chat?.channel === WORKFLOW_CHANNEL;
  return isRun ? chat.chat : undefined;
}
