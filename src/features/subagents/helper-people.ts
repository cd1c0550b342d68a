// Helpers as people see them: in /agents, /kill, /stop and /status.

import type { SystemSender } from '../../kernel/message/message.ts';
import { personNames } from '../../kernel/message/message-limits.ts';
import type { Rows } from '../../kernel/rows.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ToolContext } from '../../tools/tool.ts';
import type { Payer } from '../spending/rules/budget-limits.ts';
import type { HelperDesk } from './helper-desk.ts';
import type { HelpersOf, HelperDesk as PeoplesDesk } from './helpers.ts';
import { type HelperParent, type HelperRun, helperLine, SubagentError } from './rules/subagent.ts';

export type HelperPeopleDeps = {
  readonly runs: Rows<HelperRun>;
  readonly desk: Pick<HelperDesk, 'cancel'>;
  readonly clock: Clock;
};

export function createHelperPeople({ runs: rows, desk, clock }: HelperPeopleDeps): PeoplesDesk {
  const isRunning = ({ state }: HelperRun) => state === 'running';

  async function visible(whose: HelpersOf): Promise<readonly HelperRun[]> {
    const all = (await rows.list()).filter(({ series }) => series === undefined);
    return whose === 'all' ? all : all.filter(({ parent }) => parent.session === whose);
  }

  return {
    async lines(whose) {
      const runs = (await visible(whose)).toReversed();
      const sorted = [...runs.filter(isRunning), ...runs.filter((run) => !isRunning(run))];
      const of = (run: HelperRun) => (whose === 'all' ? ` [${run.parent.session}]` : '');
      return sorted.map((run) => `${helperLine(run, clock.now())}${of(run)}`);
    },
    running: async (whose) => (await visible(whose)).filter(isRunning).length,
    async kill(id, whose) {
      const run = (await visible(whose)).find((each) => each.id === id);
      if (run === undefined) return `There is no helper ${id}. /agents shows those there are.`;
      const ran = await desk.cancel(run, 'by a person');
      return ran ? `It is ended: ${run.label}.` : `It had ended before: ${run.label}.`;
    },
    async stopAll(session) {
      const runs = (await visible(session)).filter(isRunning);
      for (const run of runs) await desk.cancel(run, 'with what it was for');
      return runs.length;
    },
  };
}

// Who starts a helper, with what they may at that moment, and who pays for it.

type Asker = Pick<ToolContext, 'session' | 'chat' | 'rights' | 'isTainted' | 'person' | 'payer'>;

/** @throws SubagentError outside of a turn, where nobody would pay */
export function parentOf({ session, chat, rights, isTainted, person, payer }: Asker): HelperParent {
  if (payer === undefined) throw new SubagentError('Helpers are started only within a turn.');
  return {
    ...{ session, chat, rights, isTainted, person },
    payingChat: payer.chat,
    payer: payerOf(payer),
  };
}

export function payerOf(payer: Payer): Pick<SystemSender, 'paidBy' | 'limits'> {
  const { sender } = payer;
  if (sender.kind === 'person') return { paidBy: personNames(payer) };
  const { paidBy, limits } = sender;
  return {
    ...(paidBy === undefined ? {} : { paidBy }),
    ...(limits === undefined ? {} : { limits }),
  };
}
