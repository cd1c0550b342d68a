// Subagents as people see and end them: `/agents`, `/kill`, the status and `/stop`. An owner in a
// private chat sees and ends all of them.

import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command-access.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { Rows } from '../../kernel/rows.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { type SubagentRun, subagentLine } from './rules/subagent.ts';
import type { SubagentService } from './subagent-service.ts';

const MAX_LINES = 30;

export const AGENTS_COMMANDS = {
  agents: {
    summary: t`list the subagents working for you`,
    access: { direct: 'trusted', group: 'trusted' },
    timing: 'immediate',
  },
  kill: {
    summary: t`stop a subagent`,
    usage: '/kill <id>',
    access: { direct: 'trusted', group: 'trusted', audited: true },
    timing: 'immediate',
  },
} satisfies CommandTable;

export function agentsCommands(subagents: SubagentView): readonly Command[] {
  return commandsOf(AGENTS_COMMANDS, {
    async agents(origin) {
      const lines = await subagents.lines(seenBy(origin));
      if (lines.length === 0) return t`No subagents are running.`;
      const shown = lines.slice(0, MAX_LINES).map((line) => `- ${line}`);
      return [...shown, t`Stop one with /kill <id>.`].join('\n');
    },
    async kill(origin, argument) {
      if (argument === '') return t`Usage: /kill <id>; /agents lists the subagents.`;
      return subagents.kill(argument, seenBy(origin));
    },
  });
}

function seenBy({ session, message, role }: CommandOrigin): SubagentsOf {
  const isAlone = message.addressing === 'direct' && message.group === undefined;
  return role === 'owner' && isAlone ? 'all' : session;
}

/** Of one session, or all. */
type SubagentsOf = SessionKey | 'all';

export type SubagentView = ReturnType<typeof createSubagentView>;

export function createSubagentView(
  rows: Rows<SubagentRun>,
  service: Pick<SubagentService, 'cancel'>,
  clock: Clock,
) {
  const isRunning = ({ state }: SubagentRun) => state === 'running';

  async function visible(whose: SubagentsOf): Promise<readonly SubagentRun[]> {
    const all = (await rows.list()).filter(({ series }) => series === undefined);
    return whose === 'all' ? all : all.filter(({ parent }) => parent.session === whose);
  }

  return {
    /** Also the parts of pipelines and loops, oldest first. */
    all: (): Promise<readonly SubagentRun[]> => rows.list(),
    /** One line each, running ones first. */
    async lines(whose: SubagentsOf): Promise<readonly string[]> {
      const runs = (await visible(whose)).toReversed();
      const sorted = [...runs.filter(isRunning), ...runs.filter((run) => !isRunning(run))];
      const of = (run: SubagentRun) => (whose === 'all' ? ` [${run.parent.session}]` : '');
      return sorted.map((run) => `${subagentLine(run, clock.now())}${of(run)}`);
    },
    /** For /status; empty where none runs. */
    async atWork(session: SessionKey): Promise<readonly string[]> {
      const running = (await visible(session)).filter(isRunning).length;
      return running === 0 ? [] : [t`Subagents running: ${running} (see /agents)`];
    },
    /** Returns the answer for the person. */
    async kill(id: string, whose: SubagentsOf): Promise<string> {
      const run = (await visible(whose)).find((each) => each.id === id);
      if (run === undefined) return t`There is no subagent ${id}. /agents lists them.`;
      const ran = await service.cancel(run, 'by a person');
      return ran ? t`Stopped: ${run.label}.` : t`It had already ended: ${run.label}.`;
    },
    /** Ends all subagents of a session; returns their number. */
    async stopAll(session: SessionKey): Promise<number> {
      const runs = (await visible(session)).filter(isRunning);
      for (const run of runs) await service.cancel(run, 'with what it was for');
      return runs.length;
    },
  };
}
