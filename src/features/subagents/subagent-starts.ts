// Operations of the spawn tool: checks the asking turn, the limits and the profile, and formats the
// answers.

import type { SessionKey } from '../../kernel/message/ids.ts';
import type { Rows } from '../../kernel/rows.ts';
import { createLanes } from '../../lib/async.ts';
import { type Clock, sleepOrWoken } from '../../lib/time/clock.ts';
import type { MarkedAnswer, ToolContext } from '../../tools/tool.ts';
import { subagentKind } from './rules/calibration.ts';
import {
  commissionOf,
  narrowedTerms,
  SUBAGENT_CHANNEL,
  SubagentError,
  type SubagentParent,
  type SubagentRequest,
  type SubagentRun,
  subagentLabel,
  subagentLine,
} from './rules/subagent.ts';
import type { SubagentsConfig } from './settings.ts';
import type { SubagentService } from './subagent-service.ts';
import { checkSame, idOf, resultText } from './subagent-service.ts';
import type { SubagentTerms } from './terms.ts';

type SubagentStartsDeps = {
  readonly runs: Rows<SubagentRun>;
  readonly service: SubagentService;
  readonly terms: SubagentTerms;
  readonly clock: Clock;
  settings(): SubagentsConfig;
};

type SubagentAsker = Pick<
  ToolContext,
  'session' | 'turnId' | 'chat' | 'rights' | 'isTainted' | 'person' | 'payer'
>;

type OfSession = Pick<SubagentAsker, 'session'>;

export type SubagentStarts = ReturnType<typeof createSubagentStarts>;

export function createSubagentStarts({
  runs,
  service,
  terms,
  clock,
  settings,
}: SubagentStartsDeps) {
  /** Serialises starts, because each counts against the limits. */
  const lanes = createLanes();
  const line = (run: SubagentRun) => subagentLine(run, clock.now());

  /** Repeating the request in the same turn starts nothing new. @throws SubagentError */
  function start(wish: SubagentRequest, asker: SubagentAsker): Promise<MarkedAnswer> {
    return lanes.run('start', async () => {
      const id = idOf(wish, asker);
      const known = await runs.get(id);
      const isOver = known !== undefined && known.state !== 'running' && known.state !== 'done';
      const isAgain = isOver && known.plan.kind !== 'task';
      if (known !== undefined && !isAgain) return knownAnswer(known, wish);
      if (known !== undefined) checkSame(known, wish);
      const run = await runOf(id, wish, asker);
      const begun =
        known === undefined ? run : { ...run, attempt: known.attempt + 1, ...keptOf(known) };
      await service.begin(begun);
      const told =
        asker.chat.channel === SUBAGENT_CHANNEL
          ? 'Wait for it before you answer: it ends when you do.'
          : 'You are told in this conversation when it has ended; wait for it only if this answer needs it.';
      return own(`Started: ${line(begun)}. ${told}`);
    });
  }

  /**
   * The subagent for the next part of a series.
   * @throws SubagentError where its profile does not exist any more
   */
  async function childOf(
    series: SubagentRun,
    { id, plan, label }: Pick<SubagentRun, 'id' | 'plan' | 'label'>,
  ): Promise<SubagentRun> {
    const { parent, depth, isForeign } = series;
    const profile = plan.kind === 'task' ? plan.profile : undefined;
    const kind = subagentKind(series.plan.kind, plan);
    const asked = { session: parent.session, above: undefined, kind };
    return {
      ...{ id, plan, label, depth, series: series.id, attempt: 1, answers: [] },
      // Its task repeats earlier results, which may contain untrusted content.
      parent: { ...parent, isTainted: parent.isTainted || isForeign === true },
      terms: narrowedTerms(await terms.of(profile, asked), series.terms),
      startedAt: clock.now(),
      ...{ state: 'running', telling: 'due' },
    };
  }

  async function list({ session }: OfSession): Promise<MarkedAnswer> {
    const profiles = await terms.described();
    const lines = (await ownOf(session)).map(line);
    const subagents = lines.length === 0 ? ['There are no subagents.'] : lines;
    return own(
      ['Profiles:', ...profiles, 'Subagents of this conversation:', ...subagents].join('\n'),
    );
  }

  /** @throws SubagentError */
  async function check(id: string, { session }: OfSession): Promise<MarkedAnswer> {
    const run = await found(id, session);
    if (run.state !== 'running') await service.read(run.id);
    return shown([run]);
  }

  /**
   * Waits for the end of one subagent, of all where no id is given, or of the time.
   * @throws SubagentError
   */
  async function wait(
    id: string | undefined,
    ms: number,
    { session }: OfSession,
    signal: AbortSignal,
  ): Promise<MarkedAnswer> {
    const isOpen = ({ state, telling }: SubagentRun) => state === 'running' || telling === 'due';
    const pending =
      id === undefined ? (await ownOf(session)).filter(isOpen) : [await found(id, session)];
    if (pending.length === 0) return own(await noneAtWork(session));
    let answer = own('');
    await service.reading(pending, async () => {
      const over = Promise.all(pending.map((run) => service.over(run.id)));
      await sleepOrWoken(clock, ms, over, signal);
      signal.throwIfAborted();
      const now = await Promise.all(pending.map((run) => runs.get(run.id)));
      const there = now.filter((run) => run !== undefined);
      answer = shown(there);
      return there.flatMap(({ id: over, state }) => (state === 'running' ? [] : [over]));
    });
    return answer;
  }

  /** @throws SubagentError */
  async function cancel(id: string, { session }: OfSession): Promise<MarkedAnswer> {
    const run = await found(id, session);
    const ran = await service.cancel(run, 'by the agent');
    const now = (await runs.get(run.id)) ?? run;
    return own(`${ran ? 'Ended' : 'It had already ended'}: ${line(now)}`);
  }

  async function runOf(
    id: string,
    wish: SubagentRequest,
    asker: SubagentAsker,
  ): Promise<SubagentRun> {
    const parent = parentOf(asker);
    const isSubagent = asker.chat.channel === SUBAGENT_CHANNEL;
    const above = isSubagent ? await runs.get(asker.chat.chat) : undefined;
    const depth = isSubagent ? (above?.depth ?? Number.POSITIVE_INFINITY) + 1 : 1;
    await checkLimits(parent, depth);
    const { plan, label, id: name } = wish;
    if (plan.kind === 'pipeline') {
      for (const { profile } of plan.steps) {
        await terms.of(profile, { session: parent.session, above: above?.terms });
      }
    }
    const profile = plan.kind === 'pipeline' ? undefined : plan.profile;
    // The terms of a series apply to its subagents, whose limits are derived individually.
    const kind = plan.kind === 'task' ? { kind: subagentKind('task', plan) } : {};
    return {
      ...{ id, plan, parent, depth, attempt: 1, answers: [] },
      ...(name === undefined ? {} : { name }),
      label: subagentLabel(label ?? name, plan),
      terms: await terms.of(profile, { session: parent.session, above: above?.terms, ...kind }),
      startedAt: clock.now(),
      ...{ state: 'running', telling: 'due' },
    };
  }

  /** The subagents of a series do not count. @throws SubagentError */
  async function checkLimits({ session }: SubagentParent, depth: number): Promise<void> {
    const { enabled, maxDepth, maxPerParent, maxRunning } = settings();
    if (!enabled) throw new SubagentError('Subagents are switched off (agents.subagents.enabled).');
    if (depth > maxDepth) {
      throw new SubagentError(
        `A subagent at depth ${depth} is not allowed (agents.subagents.maxDepth is ${maxDepth}). Do it yourself.`,
      );
    }
    const all = await runs.list();
    const running = all.filter(({ state, series }) => state === 'running' && series === undefined);
    const here = running.filter(({ parent }) => parent.session === session);
    if (here.length < maxPerParent && running.length < maxRunning) return;
    const which =
      here.length < maxPerParent
        ? `${running.length} subagents are running in all, the maximum (agents.subagents.maxRunning)`
        : `${here.length} subagents of this conversation are running, the maximum (agents.subagents.maxPerParent)`;
    throw new SubagentError(`${which}. Wait for one, cancel one, or do it yourself.`);
  }

  function knownAnswer(known: SubagentRun, wish: SubagentRequest): MarkedAnswer {
    checkSame(known, wish);
    const answer = shown([known]);
    const how = known.state === 'running' ? 'It is already running' : 'It is already done';
    return { ...answer, text: `${how}: ${answer.text}` };
  }

  function shown(those: readonly SubagentRun[]): MarkedAnswer {
    const texts = those.map((run) =>
      run.state === 'running' ? line(run) : `${line(run)}\n${resultText(run)}`,
    );
    const isForeign = those.some((run) => run.state !== 'running' && run.isForeign === true);
    return { text: texts.join('\n\n'), isForeign };
  }

  async function found(id: string, session: SessionKey): Promise<SubagentRun> {
    const theirs = await ownOf(session);
    const run =
      theirs.find((each) => each.id === id) ?? theirs.findLast((each) => each.name === id);
    if (run !== undefined) return run;
    const there = theirs.length === 0 ? 'none' : theirs.map((each) => each.id).join(', ');
    throw new SubagentError(`This conversation has no subagent "${id}"; there is ${there}.`);
  }

  async function ownOf(session: SessionKey): Promise<readonly SubagentRun[]> {
    const all = await runs.list();
    return all.filter(({ parent, series }) => series === undefined && parent.session === session);
  }

  /** A turn resumed after a crash may wait for what it waited for before. */
  async function noneAtWork(session: SessionKey): Promise<string> {
    const over = (await ownOf(session)).map(line);
    const ended = over.length === 0 ? [] : ['These have ended; check shows a result:', ...over];
    return ['No subagent of this conversation is running.', ...ended].join('\n');
  }

  return { isEnabled: () => settings().enabled, start, childOf, list, check, wait, cancel };
}

const own = (text: string): MarkedAnswer => ({ text, isForeign: false });

/** An undecided vote is repeated. */
function keptOf({ state, answers, isForeign }: SubagentRun): Partial<SubagentRun> {
  const last = answers.at(-1)?.part;
  const kept = state === 'undecided' ? answers.filter(({ part }) => part !== last) : answers;
  return { answers: kept, ...(isForeign === true ? { isForeign } : {}) };
}

// The turn that starts a subagent: its rights at that moment, and who pays.

/** @throws SubagentError outside of a turn, where nobody would pay */
function parentOf({ session, chat, payer, ...asking }: SubagentAsker): SubagentParent {
  if (payer === undefined) throw new SubagentError('Subagents are started only within a turn.');
  return { session, chat, ...commissionOf(asking, payer) };
}
