// The turn stage of subagents: a turn in their channel is confined to the terms of its subagent and charged
// to the person who asked, and its answer becomes the result. A later turn of the same conversation, e.g.
// after an approval, adds to the result.

import type { Agent, TurnInput } from '../../agent/agent.ts';
import type { Turn } from '../../kernel/bus/bus.ts';
import type { Rows } from '../../kernel/rows.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { HandledTurn, NextStage, TurnSetup, TurnStage } from '../../kernel/turns/stages.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { HelperDesk } from './helper-desk.ts';
import type { Experience } from './learnt.ts';
import { isForeignTurn, taskMessageId } from './messages.ts';
import { type HelperRun, leftMs, SUBAGENT_CHANNEL } from './rules/subagent.ts';
import type { HelperSignals } from './series.ts';

export type SubagentsStageDeps = {
  readonly runs: Rows<HelperRun>;
  readonly desk: Pick<HelperDesk, 'end' | 'addendum'>;
  readonly sessions: Pick<SessionStore, 'turn'>;
  readonly signals: HelperSignals;
  readonly clock: Clock;
  readonly log: Logger;
  readonly experience: Pick<Experience, 'helperEnded'>;
  models(): ModelRegistry;
  maxDepth(): number;
};

const SPAWN = 'spawn';
const GIVEN_UP = 'It failed several times and is set aside (see "nanobot dead list").';

/** The agent for the turns of subagents. */
export function confinedAgent(agent: Agent, deps: SubagentsStageDeps): Agent {
  return {
    ...agent,
    async *run(input, context, signal) {
      const run = await deps.runs.get(input.chat.chat);
      if (run === undefined) return yield* agent.run(input, context, signal);
      const own = confined(input, run, deps);
      return yield* deps.signals.heard(own, run, (heard) => agent.run(heard, context, signal));
    },
  };
}

/** @param setup with the confined agent */
export function subagentsStage(setup: TurnSetup, deps: SubagentsStageDeps): TurnStage {
  const { runs, desk, sessions, log } = deps;

  async function run(turn: Turn, next: NextStage): Promise<HandledTurn> {
    const { seq, message } = turn.messages[0];
    const { chat } = turn.chat;
    const isTask = message.id === taskMessageId(chat);
    const known = await runs.get(chat);
    if (known === undefined || (isTask && known.state === 'cancelled')) {
      return { throughSeq: seq, outbound: [], note: 'the helper was ended' };
    }
    const handled = await next(turn, setup);
    const text = handled.outbound.map(({ markdown }) => markdown).join('\n\n');
    const isForeign = await isForeignTurn(sessions, turn.session, turn.id);
    if (isTask) {
      const state = handled.ending === 'answered' ? 'done' : 'failed';
      // Before the end is told: the next helper is to profit from it.
      if (handled.ending !== 'stopped') {
        await deps.experience.helperEnded(known, turn, state === 'done');
      }
      await desk.end(chat, { state, result: text, isForeign });
    } else if (text !== '') {
      await desk.addendum(chat, turn.id, text, isForeign);
    }
    return { ...handled, outbound: [] };
  }

  return {
    name: 'subagents',
    run: (turn, next) => (turn.chat.channel === SUBAGENT_CHANNEL ? run(turn, next) : next(turn)),
    onPoison(turn) {
      if (turn.chat.channel !== SUBAGENT_CHANNEL) return undefined;
      const { chat: helper } = turn.chat;
      desk
        .end(helper, { state: 'failed', result: GIVEN_UP, isForeign: false })
        .catch((error) => log.error('end of a helper not noted', { helper, error }));
      return [];
    },
  };
}

function confined(input: TurnInput, run: HelperRun, deps: SubagentsStageDeps): TurnInput {
  const { terms, parent, depth } = run;
  const { tools, rounds, tokens, model } = terms;
  const [first, ...rest] = input.messages;
  const paid = (each: typeof first) => ({
    ...each,
    message: { ...each.message, session: input.session, chat: parent.payingChat },
  });
  const mayStart = depth < Math.min(deps.maxDepth(), terms.depth ?? deps.maxDepth());
  const isVote = run.plan.kind === 'task' && run.plan.isVote === true;
  return {
    ...input,
    messages: [paid(first), ...rest.map(paid)],
    settings: {
      ...input.settings,
      ...(model === undefined ? {} : { model: helperModel(model, deps.models()) }),
    },
    confines: {
      // What voters do would be done several times over: they only answer.
      mayUse: (tool) =>
        !isVote && (tool !== SPAWN || mayStart) && (tools === undefined || tools.includes(tool)),
      ...(isVote ? { role: 'vote' } : {}),
      ...(rounds === undefined ? {} : { maxRounds: rounds }),
      maxTokens: tokens,
      maxMs: leftMs(run, deps.clock.now()),
    },
  };
}

/** With its prefix, of one as in terms. */
export function helperModel(name: string | undefined, models: ModelRegistry): string {
  if (name === undefined || name === 'default') return models.defaultModel;
  return name === 'fast' ? models.fast(models.defaultModel) : name;
}
