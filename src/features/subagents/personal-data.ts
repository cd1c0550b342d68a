// What a person wants forgotten, in what is kept of helpers: whose a helper is follows from the
// conversation that started it.

import type { StartedFrom } from '../../kernel/contributions.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { sessionKeyOf } from '../../kernel/message/message.ts';
import type { PersonalData } from '../../kernel/personal-data.ts';
import { type OpenRows, openWork } from '../../kernel/rows.ts';
import { chatsOfChannel } from '../../kernel/sessions/forget.ts';
import { deleteLeftovers } from '../../kernel/sessions/maintenance.ts';
import { FORGOTTEN } from '../../kernel/sessions/rules/forgetting.ts';
import { number, object, objects, rowShape, text } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { JobRows } from '../schedule/job-rows.ts';
import { HEARTBEAT, jobChat } from '../schedule/rules/job.ts';
import { JOB_CHANNEL } from '../schedule/settings.ts';
import { SUBAGENT_CHANNEL, type SubagentRun, subagentSession } from './rules/subagent.ts';

/** A subagent at work keeps its task until it has ended. */
export function createSubagentErasure({
  runs,
  known,
}: SubagentRows): Required<Pick<PersonalData, 'chatsBelow' | 'forget'>> {
  return {
    async chatsBelow(chats) {
      const above = new Set(chats);
      const below: string[] = [];
      let left = await known();
      for (let found = -1; found !== below.length; ) {
        found = below.length;
        const theirs = left.filter(({ parent }) => above.has(withoutTopic(parent.session)));
        left = left.filter((run) => !theirs.includes(run));
        for (const { id } of theirs) above.add(subagentSession(id));
        below.push(...theirs.map(({ id }) => subagentSession(id)));
      }
      return below;
    },
    async forget(chats, holds) {
      const isMeant = (run: SubagentRun) =>
        run.state !== 'running' && chats.includes(subagentSession(run.id)) && holds(textsOf(run));
      const theirs = (await runs.list()).filter(isMeant);
      const changed = theirs.map(({ id }) =>
        runs.change(id, (run) => run && (isMeant(run) ? withoutTexts(run) : undefined)),
      );
      return (await Promise.all(changed)).filter((run) => run !== undefined).length;
    },
  };
}

const textsOf = ({ name, label, plan, result, answers }: SubagentRun) =>
  JSON.stringify([name, label, plan, result, answers]);

function withoutTexts({ name: _, ...run }: SubagentRun): SubagentRun {
  const plan = { kind: 'task', task: FORGOTTEN } as const;
  return { ...run, plan, label: FORGOTTEN, result: FORGOTTEN, answers: [] };
}

/** The conversation that started the subagent. */
export function startedFromSubagents({ whose }: SubagentRows): StartedFrom {
  return async (id) => {
    const run = await whose(id);
    return run === undefined ? [] : [run.parent.session];
  };
}

// What is left of work that is over: conversations of helpers and jobs lie on the disk for a while, are
// known by whose work they were, and go.

type WorkLeftoversDeps = {
  readonly subagents: SubagentRows;
  readonly jobs: JobRows;
  readonly clock: Clock;
  readonly log: Logger;
  readonly keepDays: () => number;
  /** Deletes files of the channel's conversations that were last written before. */
  deleteFiles(rule: Parameters<typeof deleteLeftovers>[1]): ReturnType<typeof deleteLeftovers>;
};

const DAY_MS = 86_400_000;
const EVERY_MS = 3_600_000;

const sessionOfJob = (id: string) => sessionKeyOf(jobChat(id));

/** Deletes old conversations of work that is over, and says what an owner may have erased of them. */
export function installLeftovers(kernel: Kernel, subagents: SubagentRows, jobs: JobRows): void {
  const { live, clock, log, sessionFiles, add } = kernel;
  const leftovers = createWorkLeftovers({
    ...{ subagents, jobs, clock, log, keepDays: () => live.config.sessions.keepWorkDays },
    deleteFiles: (rule) => deleteLeftovers(sessionFiles, rule),
  });
  const onDisk = (channel: string) => chatsOfChannel(sessionFiles, channel);
  add.task({ name: 'leftovers', run: leftovers.run });
  add.personalData({
    chatsBelow: async (_chats, isOwner) =>
      isOwner ? chatsOfNobody({ subagents, jobs }, onDisk) : [],
  });
}

export function createWorkLeftovers(deps: WorkLeftoversDeps) {
  const { subagents, jobs, clock, log } = deps;

  /** Deletes files of conversations that are not in use, and what told whose they were. */
  async function deleteOf(
    channel: string,
    { removed }: SubagentRows | JobRows,
    sessionOf: (id: string) => SessionKey,
    isInUse: (session: string) => boolean,
  ): Promise<number> {
    const before = clock.now() - deps.keepDays() * DAY_MS;
    const gone = await removed.list();
    const { deleted, left } = await deps.deleteFiles({
      ...{ channel, before },
      isInUse: (session) => isInUse(withoutTopic(session)),
    });
    for (const { id } of gone) {
      if (!left.has(sessionOf(id))) await removed.change(id, () => 'remove');
    }
    return deleted;
  }

  async function clean(): Promise<number> {
    const open = new Set<string>(
      (await subagents.runs.list()).map(({ id }) => subagentSession(id)),
    );
    const over = new Set<string>((await jobs.removed.list()).map(({ id }) => sessionOfJob(id)));
    return (
      (await deleteOf(SUBAGENT_CHANNEL, subagents, subagentSession, (chat) => open.has(chat))) +
      (await deleteOf(JOB_CHANNEL, jobs, sessionOfJob, (chat) => !over.has(chat)))
    );
  }

  return {
    /** Now, and every hour until stopped. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const deleted = await clean();
        if (deleted > 0) log.info('old conversations of subagents and jobs deleted', { deleted });
        await clock.sleep(EVERY_MS, signal).catch(() => undefined);
      }
    },
  };
}

/** Conversations on the disk of which nothing tells whose work they were: left by older programs. */
export async function chatsOfNobody(
  { subagents, jobs }: Pick<WorkLeftoversDeps, 'subagents' | 'jobs'>,
  onDisk: (channel: string) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const known = new Set<string>([
    ...(await subagents.known()).map(({ id }) => subagentSession(id)),
    ...(await jobs.known()).map(({ id }) => sessionOfJob(id)),
    sessionOfJob(HEARTBEAT),
  ]);
  const found = [...(await onDisk(SUBAGENT_CHANNEL)), ...(await onDisk(JOB_CHANNEL))];
  return found.filter((chat) => !known.has(chat));
}

const withoutTopic = (session: string) => session.split('#', 1).join();

// The collection of the runs of subagents.

const RUN = rowShape<SubagentRun>({
  ...{ id: text, label: text, plan: object, parent: object, depth: number, terms: object },
  ...{ attempt: number, answers: objects, startedAt: number, state: text, telling: text },
});

export type SubagentRows = ReturnType<typeof openSubagents>;

/** `runs`: oldest first. */
export function openSubagents(rows: OpenRows) {
  const { all: runs, ...others } = openWork(rows, {
    shape: RUN,
    left: rowShape<Pick<SubagentRun, 'id' | 'parent'>>({ id: text, parent: object }),
    leaves: ({ id, parent }) => ({ id, parent }),
    ...{ scope: 'subagents', prefix: 'run:' },
    order: (one, other) => one.startedAt - other.startedAt,
  });
  return { runs, ...others };
}

/** Removes runs that ended before then (epoch milliseconds). */
export async function removeEndedRuns({ runs, remove }: SubagentRows, before: number) {
  const isOld = ({ state, endedAt, startedAt }: SubagentRun) =>
    state !== 'running' && (endedAt ?? startedAt) < before;
  for (const { id } of (await runs.list()).filter(isOld)) await remove(id, isOld);
}
