// Installs approvals of tool calls, and the agent's questions to people.

import type { ApprovedCall, TurnMessage } from '../../agent/agent.ts';
import { AGENT } from '../../agent/install.ts';
import { LOCAL_OWNER } from '../../channels/local-channel.ts';
import { answerNote, expiredNote } from '../../kernel/access/person.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { ASKING } from '../../kernel/guards.ts';
import { callId, type MessageId, messageId, type SessionKey } from '../../kernel/message/ids.ts';
import { previewOf } from '../../kernel/message/message.ts';
import { NOTICES } from '../../kernel/owners.ts';
import { EXPIRED } from '../../kernel/questions/question-rows.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { jsonRows } from '../../kernel/rows.ts';
import type { TurnScope, TurnStage } from '../../kernel/turns/stages.ts';
import { object } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { ToolOutcome } from '../../tools/tool.ts';
import { type AllowRules, createAllowRules, openAllowRuleRows } from './allow-rules.ts';
import {
  APPROVAL_SUBJECT,
  APPROVALS_SCOPE,
  APPROVED_CALLS,
  type Approval,
  CALL,
  questionId,
  type WaitingCall,
} from './approval-rows.ts';
import { APPROVAL_TEXTS, type Approvals, createApprovals, resultText } from './approvals.ts';
import { ASK_SUBJECT, type Ask, type Asks, createAsks } from './asks.ts';

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
export { APPROVED_CALLS, type ApprovedCalls, hasPlace } from './approval-rows.ts';

export const STANDING = port<AllowRules>('standing approvals');

export async function install(kernel: Kernel): Promise<void> {
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
  await takeOver(kernel);
  const approvals = createApprovals({
    ...{ bus, questions, standing, clock, log, ownerChat: owners.askChat },
    isAwaited: async ({ channel, chat }) =>
      (await kernel.contributed.stillWanted(channel)?.(chat)) ?? true,
  });
  const asks = createAsks({ bus, questions, clock, log });
  add.stage(
    approvalsStage({
      ...{ approvals, questions, asks, bus },
      run: (call, signal) => agent.runApproved(call, signal),
    }),
  );
  add.answers('approval', approvals.handler, 'approval');
  add.answers(ASK_SUBJECT, asks.handler);
  add.personalData(standing);
  add.routes(
    [
      'GET /api/v1/approvals/rules',
      'GET /api/v1/approvals/rules/events',
      'POST /api/v1/approvals/rules/:id/revoke',
    ],
    async () =>
      (await import('./rule-routes.ts')).ruleRoutes({
        standing,
        owner: LOCAL_OWNER,
        audit: kernel.measuring.audit,
        clock: kernel.clock,
      }),
  );
  kernel.provide(APPROVED_CALLS, approvals);
  add.callGuard({
    name: 'standing approvals',
    judge: async (call, turn) => ((await approvals.allows(call, turn)) ? 'run' : undefined),
  });
  add.callGuard({ name: 'approvals', judge: (call, turn) => approvals.request(call, turn) });
  kernel.provide(ASKING, asks.ask);
  kernel.provide(STANDING, standing);
}

// The turn stage of approvals: a message that represents an approved call becomes the result of
// that call, and a message that answers a question of the agent is marked as its answer. The
// approved call is executed here, once: a call that had started when the process died is never
// started again.

type ApprovalsStageDeps = {
  readonly approvals: Pick<Approvals, 'get' | 'tellOutcome'>;
  readonly questions: Pick<Questions, 'change'>;
  readonly asks: Pick<Asks, 'bind'>;
  readonly bus: Pick<MessageBus, 'send'>;
  run(call: ApprovedCall, signal: AbortSignal): Promise<ToolOutcome>;
};

export function approvalsStage(deps: ApprovalsStageDeps) {
  const { approvals, questions, asks, bus } = deps;

  const moved = (id: string, run: NonNullable<WaitingCall['run']>, from?: 'running') =>
    questions.change(questionId(id), CALL, (call) =>
      call.run?.kind === from ? { ...call, run } : undefined,
    );

  /** The call after this step; it is run unless it was started before. */
  async function executed(approval: Approval, signal: AbortSignal): Promise<Approval> {
    if (approval.state.kind !== 'granted') return approval;
    if (!(await moved(approval.id, { kind: 'running' }))) {
      return (await approvals.get(approval.id)) ?? approval;
    }
    const say: ApprovedCall['say'] = async (markdown, ordinal, attachments = []) => {
      const id = messageId(`approval/${approval.id}/say/${ordinal}`);
      const files = attachments.length === 0 ? {} : { attachments };
      await bus.send({ id, chat: approval.chat, markdown, ...files });
    };
    const { status, text, isForeign = false } = await deps.run({ ...approval, say }, signal);
    // Stopped while it ran: the outcome stays unknown.
    if (status === 'failed') signal.throwIfAborted();
    const done = { kind: 'done', status, text, isForeign } as const;
    await moved(approval.id, done, 'running');
    return { ...approval, state: done };
  }

  async function withResult(each: TurnMessage, { signal, show }: TurnScope): Promise<TurnMessage> {
    const { message } = each;
    const approval = await approvals.get(message.text);
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
      const bound = await asks.bind(turn.session, each.message);
      return {
        ...each,
        message: bound.message,
        rights: bound.rightsFrom(each.rights),
        isForeign: each.isForeign || bound.isForeign,
      };
    },
  } satisfies TurnStage;
}

// Rows of earlier versions, which kept calls and questions of the agent beside the questions.

type EarlierCall = WaitingCall & {
  readonly id: string;
  readonly state: { readonly kind: string };
};
type EarlierAsk = Ask & {
  readonly id: string;
  readonly session: SessionKey;
  /** `by`, `toldIn`: the message that tells the model. */
  readonly state: {
    readonly kind: 'open' | 'replaced' | 'answered' | 'expired';
    readonly choice?: string;
    readonly by?: MessageId;
    readonly toldIn?: MessageId;
  };
};

async function takeOver({ rows, questions }: Kernel): Promise<void> {
  const calls = rows({ ...jsonRows<EarlierCall>(object), scope: APPROVALS_SCOPE, prefix: 'call:' });
  await questions.adopt(calls, ({ id, state, ...call }) => {
    const { kind } = state;
    const payload = kind === 'running' || kind === 'done' ? { ...call, run: state } : call;
    const own = { id: questionId(id), subject: `${APPROVAL_SUBJECT}:${id}` };
    const isRefused = kind === 'denied' || kind === 'expired';
    const outcome = isRefused ? EXPIRED : kind === 'open' ? undefined : 'allow';
    return { ...own, session: call.session, payload, outcome };
  });
  const asks = rows({ ...jsonRows<EarlierAsk>(object), scope: 'asks', prefix: 'ask:' });
  await questions.adopt(asks, ({ id, session, state, ...payload }) => {
    const { kind, choice, by, toldIn = by } = state;
    const own = { id: `${ASK_SUBJECT}/${id}`, subject: `${ASK_SUBJECT}:${id}`, session, payload };
    const { question } = payload;
    const told = kind === 'answered' ? answerNote(question, choice) : expiredNote(question);
    const note = kind === 'replaced' ? undefined : told;
    return { ...own, outcome: kind === 'open' ? undefined : kind, note, toldIn };
  });
}
