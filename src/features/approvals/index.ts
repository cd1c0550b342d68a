// Installs approvals of tool calls, and the agent's questions to people.

import type { ApprovedCall, TurnMessage } from '../../agent/agent.ts';
import { AGENT } from '../../agent/install.ts';
import { LOCAL_OWNER } from '../../channels/local-channel.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { ASKING } from '../../kernel/guards.ts';
import { callId, messageId } from '../../kernel/message/ids.ts';
import { previewOf } from '../../kernel/message/message.ts';
import { NOTICES } from '../../kernel/owners.ts';
import { moveOn } from '../../kernel/questions/question-rows.ts';
import type { Rows } from '../../kernel/rows.ts';
import type { TurnScope, TurnStage } from '../../kernel/turns/stages.ts';
import { t } from '../../lib/texts.ts';
import type { ToolOutcome } from '../../tools/tool.ts';
import { type AllowRules, createAllowRules, openAllowRuleRows, ruleRoutes } from './allow-rules.ts';
import { APPROVED_CALLS, type Approval, openApprovalRows } from './approval-rows.ts';
import { APPROVAL_TEXTS, type Approvals, createApprovals, resultText } from './approvals.ts';
import { ASK_SUBJECT, type Asks, createAsks, openAsks } from './asks.ts';

export {
  type AllowedCall,
  type AllowRules,
  endWords,
  type ShownAllowRule,
  shortId,
  TERM_WORDS,
  TERMS,
  type Term,
} from './allow-rules.ts';
export { APPROVED_CALLS, type Approval, hasPlace } from './approval-rows.ts';
export type { Approvals } from './approvals.ts';

export const APPROVALS = port<Approvals>('approvals');
export const ASKS = port<Asks>('asks');
export const STANDING = port<AllowRules>('standing approvals');

export function install(kernel: Kernel): void {
  const { live, clock, log, bus, rows, questions, origins, owners, add } = kernel;
  const agent = kernel.use(AGENT);
  const standing = createAllowRules({
    rows: openAllowRuleRows(rows),
    ...{ clock, log, origins, audit: kernel.measuring.audit, outsideChats: NOTICES },
    days: () => live.config.tools.approvals.alwaysDays,
    timeZone: () => live.config.sessions.timeZone,
    async personOf(whose) {
      const [, channel = '', id = ''] = /^([^:]*):(.*)$/s.exec(whose) ?? [];
      return (await kernel.people.persons.of(channel, [id]))?.id ?? whose;
    },
  });
  const calls = openApprovalRows(rows);
  const approvals = createApprovals({
    ...{ calls, bus, questions, standing, clock, log, ownerChat: owners.askChat },
    isAwaited: async ({ channel, chat }) =>
      (await kernel.contributed.stillWanted(channel)?.(chat)) ?? true,
  });
  const asks = createAsks({ asks: openAsks(rows), bus, questions, clock, log });
  add.stage(
    approvalsStage({
      calls,
      approvals,
      asks,
      bus,
      run: (call, signal) => agent.runApproved(call, signal),
    }),
  );
  add.answers('approval', approvals.handler, 'approval');
  add.answers(ASK_SUBJECT, asks.handler);
  for (const kept of [asks, approvals, standing]) add.personalData(kept);
  add.routes(['GET /api/approvals', 'POST /api/approvals/revoke'], async () =>
    ruleRoutes({ standing, owner: LOCAL_OWNER, audit: kernel.measuring.audit }),
  );
  kernel.provide(APPROVED_CALLS, calls);
  add.callGuard({
    name: 'standing approvals',
    judge: async (call, turn) => ((await approvals.allows(call, turn)) ? 'run' : undefined),
  });
  add.callGuard({ name: 'approvals', judge: (call, turn) => approvals.request(call, turn) });
  kernel.provide(ASKING, asks.ask);
  kernel.provide(APPROVALS, approvals);
  kernel.provide(ASKS, asks);
  kernel.provide(STANDING, standing);
}

// The turn stage of approvals: a message that represents an approved call becomes the result of
// that call, and a message that answers a question of the agent is marked as its answer. The
// approved call is executed here, once: a call that had started when the process died is never
// started again.

type ApprovalsStageDeps = {
  readonly calls: Rows<Approval>;
  readonly approvals: Pick<Approvals, 'tellOutcome' | 'refusals'>;
  readonly asks: Pick<Asks, 'bind'>;
  readonly bus: Pick<MessageBus, 'send'>;
  run(call: ApprovedCall, signal: AbortSignal): Promise<ToolOutcome>;
};

export function approvalsStage(deps: ApprovalsStageDeps) {
  const { calls, approvals, asks, bus } = deps;

  /** The call after this step; it is run unless it was started before. */
  async function executed(approval: Approval, signal: AbortSignal): Promise<Approval> {
    if (approval.state.kind !== 'granted') return approval;
    if (!(await moveOn(calls, approval.id, ['granted'], { kind: 'running' }))) {
      return (await calls.get(approval.id)) ?? approval;
    }
    const say: ApprovedCall['say'] = async (markdown, ordinal, attachments = []) => {
      const id = messageId(`approval/${approval.id}/say/${ordinal}`);
      const files = attachments.length === 0 ? {} : { attachments };
      await bus.send({ id, chat: approval.chat, markdown, ...files });
    };
    const { status, text, isForeign = false } = await deps.run({ ...approval, say }, signal);
    // Stopped while it ran: the outcome stays unknown.
    if (status === 'failed') signal.throwIfAborted();
    const done: Approval = { ...approval, state: { kind: 'done', status, text, isForeign } };
    await calls.change(done.id, () => done);
    return done;
  }

  async function withResult(each: TurnMessage, { signal, show }: TurnScope): Promise<TurnMessage> {
    const { message } = each;
    const approval = await calls.get(message.text);
    if (approval === undefined)
      return { ...each, message: { ...message, text: APPROVAL_TEXTS.LOST } };
    const { id, tool } = approval;
    const shownId = callId(id);
    show({ type: 'tool_started', callId: shownId, name: tool, detail: approval.detail ?? '' });
    const ended = await executed(approval, signal);
    await approvals.tellOutcome(ended);
    const { state } = ended;
    const [status, preview] =
      state.kind === 'done'
        ? ([state.status, previewOf(state.text)] as const)
        : (['failed', t`Stopped while it ran`] as const);
    show({ type: 'tool_finished', callId: shownId, status, preview });
    const isForeign = each.isForeign || (state.kind === 'done' && state.isForeign);
    return { ...each, message: { ...message, text: resultText(tool, state) }, isForeign };
  }

  return {
    name: 'approvals',
    async message(each, turn) {
      const { sender } = each.message;
      if (sender.kind === 'system' && sender.source === 'approval') return withResult(each, turn);
      const refusals = await approvals.refusals(turn.session, each.message);
      const bound = await asks.bind(turn.session, each.message);
      const { note } = bound.message;
      const notes = [...refusals, ...(note === undefined ? [] : [note])];
      return {
        ...each,
        message: notes.length === 0 ? bound.message : { ...bound.message, note: notes.join('\n') },
        rights: bound.rightsFrom(each.rights),
        isForeign: each.isForeign || bound.isForeign,
      };
    },
  } satisfies TurnStage;
}
