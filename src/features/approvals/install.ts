// Installs the approvals of tool calls by owners and the questions that the agent asks people.

import { AGENT } from '../../agent/install.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { NOTICES } from '../../kernel/owners.ts';
import { APPROVED_CALLS, openApprovalRows } from './approval-rows.ts';
import { type Approvals, createApprovals } from './approvals.ts';
import { ASK_SUBJECT, type Asks, createAsks, openAsks } from './asks.ts';
import { approvalsStage } from './stage.ts';
import { createStanding, openStandingRows, type Standing } from './standing.ts';

export const APPROVALS = port<Approvals>('approvals');
export const ASKS = port<Asks>('asks');
export const STANDING = port<Standing>('standing approvals');

export function install(kernel: Kernel): void {
  const { live, clock, log, bus, rows, questions, origins, owners, add } = kernel;
  const agent = kernel.use(AGENT);
  const standing = createStanding({
    rows: openStandingRows(rows),
    ...{ clock, log, origins, audit: kernel.measuring.audit, outsideChats: NOTICES },
    days: () => live.config.tools.approvals.alwaysDays,
  });
  const calls = openApprovalRows(rows);
  const approvals = createApprovals({
    ...{ calls, bus, questions, standing, clock, log, ownerChat: owners.askChat },
    isAwaited: async ({ channel, chat }) =>
      (await kernel.contributed.stillWanted(channel)?.(chat)) ?? true,
    timeZone: () => live.config.sessions.timeZone,
  });
  const asks = createAsks({ asks: openAsks(rows), bus, questions, clock, log });
  add.stage(
    approvalsStage({ calls, asks, bus, run: (call, signal) => agent.runApproved(call, signal) }),
  );
  add.answers('approval', approvals.handler, 'approval');
  add.answers(ASK_SUBJECT, { ...asks.handler, takeUp: () => asks.takeUp() });
  for (const kept of [asks, approvals, standing]) add.personalData(kept);
  kernel.provide(APPROVED_CALLS, calls);
  kernel.provide(APPROVALS, approvals);
  kernel.provide(ASKS, asks);
  kernel.provide(STANDING, standing);
}
