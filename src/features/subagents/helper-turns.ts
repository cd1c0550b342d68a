// The turns of helpers: each is held to its terms, charged to whoever asked, and its answer becomes the
// result. A turn that comes later in such a conversation, e.g. because an owner allowed something, adds
// to it.

import type { Agent, TurnInput } from '../../agent/agent.ts';
import type { Turn } from '../../kernel/bus/bus.ts';
import type { Rows } from '../../kernel/rows.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { Dispatcher, HandledTurn } from '../../kernel/turns/dispatcher.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { Experience } from './experience.ts';
import type { HelperDesk } from './helper-desk.ts';
import { taskMessageId } from './helper-messages.ts';
import type { HelperSignals } from './helper-signals.ts';
import { type HelperRun, leftMs, SUBAGENT_CHANNEL } from './rules/subagent.ts';
import { isForeignTurn } from './turn-taint.ts';

export type HelperTurnsDeps = {
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

/** The agent for turns of helpers. */
export function confinedAgent(agent: Agent, deps: HelperTurnsDeps): Agent {
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

/** `own`: the dispatcher for their turns, over the confined agent. */
export function withHelpers(
  dispatcher: Dispatcher,
  own: Dispatcher,
  deps: HelperTurnsDeps,
): Dispatcher {
  const { runs, desk, sessions, log } = deps;

  async function run(turn: Turn): Promise<HandledTurn> {
    const { seq, message } = turn.messages[0];
    const { chat } = turn.chat;
    const isTask = message.id === taskMessageId(chat);
    const known = await runs.get(chat);
    if (known === undefined || (isTask && known.state === 'cancelled')) {
      return { throughSeq: seq, outbound: [], note: 'the helper was ended' };
    }
    const handled = await own.handle(turn);
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
    handle: (turn) =>
      turn.chat.channel === SUBAGENT_CHANNEL ? run(turn) : dispatcher.handle(turn),
    onPoison(turn) {
      if (turn.chat.channel !== SUBAGENT_CHANNEL) return dispatcher.onPoison(turn);
      const { chat: helper } = turn.chat;
      desk
        .end(helper, { state: 'failed', result: GIVEN_UP, isForeign: false })
        .catch((error) => log.error('end of a helper not noted', { helper, error }));
      return [];
    },
  };
}

function confined(input: TurnInput, run: HelperRun, deps: HelperTurnsDeps): TurnInput {
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
