// What a person wants forgotten, in what is kept of helpers: whose a helper is follows from the
// conversation that started it.

import type { StartedFrom } from '../../kernel/contributions.ts';
import type { PersonalData } from '../../kernel/personal-data.ts';
import { FORGOTTEN } from '../../kernel/sessions/rules/forgetting.ts';
import { type HelperRun, helperSession } from './rules/subagent.ts';
import type { SubagentRows } from './subagent-rows.ts';

/** A subagent at work keeps its task until it has ended. */
export function createHelperForgetting({
  runs,
  removed,
}: SubagentRows): Required<Omit<PersonalData, 'find'>> {
  return {
    async chatsBelow(chats) {
      const above = new Set(chats);
      const below: string[] = [];
      let left: readonly Pick<HelperRun, 'id' | 'parent'>[] = [
        ...(await removed.list()),
        ...(await runs.list()),
      ];
      for (let found = -1; found !== below.length; ) {
        found = below.length;
        const theirs = left.filter(({ parent }) => above.has(parent.session.split('#', 1).join()));
        left = left.filter((run) => !theirs.includes(run));
        for (const { id } of theirs) above.add(helperSession(id));
        below.push(...theirs.map(({ id }) => helperSession(id)));
      }
      return below;
    },
    async forget(chats, holds) {
      const theirs = (await runs.list()).filter(({ id }) => chats.includes(helperSession(id)));
      let forgotten = 0;
      for (const { id } of theirs) {
        const changed = await runs.change(id, (run) =>
          run !== undefined && run.state !== 'running' && holds(textsOf(run))
            ? withoutTexts(run)
            : undefined,
        );
        if (changed !== undefined) forgotten += 1;
      }
      return forgotten;
    },
  };
}

const textsOf = ({ name, label, plan, result, answers }: HelperRun) =>
  JSON.stringify([name, label, plan, result, answers]);

function withoutTexts({ name: _, ...run }: HelperRun): HelperRun {
  const plan = { kind: 'task', task: FORGOTTEN } as const;
  return { ...run, plan, label: FORGOTTEN, result: FORGOTTEN, answers: [] };
}

/** The conversation that started the subagent. */
export function startedFromHelpers({ runs, removed }: SubagentRows): StartedFrom {
  return async (id) => {
    const run = (await runs.get(id)) ?? (await removed.get(id));
    return run === undefined ? [] : [run.parent.session];
  };
}
