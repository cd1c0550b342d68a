// Finalizing: what the person gets, recorded on disk before anyone is told. Neither a stop nor a
// deadline breaks this off.

import { JOB_CHANNEL } from '../features/schedule/rules/job.ts';
import type { TranscriptEntry } from '../kernel/message/transcript.ts';
import { closingOf } from './rules/turn-closing.ts';
import type { SignalOf, StateOf } from './rules/turn-state.ts';
import type { TurnContext } from './turn-context.ts';

export async function finalizeTurn(
  turn: TurnContext,
  { ending, progress }: StateOf<'finalizing'>,
): Promise<SignalOf<'finalizing'>> {
  const { thread, input, clock } = turn;
  const begun = thread.partial;
  const written = thread.written(begun?.text);
  // The answers of subagents and jobs are read by the program, which expects the words alone.
  const isForPerson =
    input.confines === undefined && input.messages[0].message.chat.channel !== JOB_CHANNEL;
  const notices = isForPerson ? turn.notices.kept : [];
  const { outcome, answers } = closingOf(ending, written, turn.limits, notices);
  const { throughSeq } = thread;
  const common = { turnId: input.turnId, at: clock.now() };
  const unfinished: readonly TranscriptEntry[] =
    begun === undefined
      ? []
      : [{ ...common, ...begun, role: 'assistant', toolCalls: [], thinking: [], throughSeq }];
  const { unrecorded } = turn.shared;
  const shared = unrecorded.length === 0 ? {} : { shared: unrecorded };
  const end: TranscriptEntry = {
    ...common,
    ...{ role: 'turn_end', outcome, answers, throughSeq },
    ...shared,
  };
  await thread.record([...unfinished, end], { durable: true });
  turn.log.debug('turn closed', {
    ending: ending.kind,
    ...(ending.kind === 'limit' ? { limit: ending.limit } : {}),
    rounds: progress.rounds,
    tokens: progress.tokens,
    elapsedMs: turn.time.elapsedMs(),
  });
  return { type: 'recorded', outcome: { kind: outcome, answers, throughSeq } };
}
