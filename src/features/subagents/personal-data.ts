// Erases data of subagents on behalf of a person: a subagent belongs to the conversation that
// started it.

import type { StartedFrom } from '../../kernel/contributions.ts';
import type { PersonalData } from '../../kernel/personal-data.ts';
import { type OpenRows, openWork } from '../../kernel/rows.ts';
import { FORGOTTEN, type Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { number, object, objects, rowShape, text } from '../../lib/json/json.ts';
import { type SubagentRun, subagentSession } from './rules/subagent.ts';

/** A running subagent keeps its task until it has ended. */
export function createSubagentErasure({ runs, known }: SubagentRows) {
  return {
    async chatsBelow(chats: readonly string[]): Promise<readonly string[]> {
      const above = new Set(chats);
      const theirs = (await known()).filter(({ parent }) =>
        above.has(withoutTopic(parent.session)),
      );
      return theirs.map(({ id }) => subagentSession(id));
    },
    async forget(chats: readonly string[], holds: Holds): Promise<number> {
      const isMeant = (run: SubagentRun) =>
        run.state !== 'running' && chats.includes(subagentSession(run.id)) && holds(textsOf(run));
      const theirs = (await runs.list()).filter(isMeant);
      const changed = theirs.map(({ id }) =>
        runs.change(id, (run) => run && (isMeant(run) ? withoutTexts(run) : undefined)),
      );
      return (await Promise.all(changed)).filter((run) => run !== undefined).length;
    },
  } satisfies PersonalData;
}

const textsOf = ({ name, label, plan, result, answers }: SubagentRun) =>
  JSON.stringify([name, label, plan, result, answers]);

function withoutTexts({ name: _, ...run }: SubagentRun): SubagentRun {
  const plan = { kind: 'task', task: FORGOTTEN } as const;
  return { ...run, plan, label: FORGOTTEN, result: FORGOTTEN, answers: [] };
}

/** The session that started the subagent. */
export function startedFromSubagents({ whose }: SubagentRows): StartedFrom {
  return async (id) => {
    const run = await whose(id);
    return run === undefined ? [] : [run.parent.session];
  };
}

export const withoutTopic = (session: string) => session.split('#', 1).join();

// Stored rows of subagent runs.

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
