// What helpers at work report to the turn that asked, by a message in its very conversation: it joins
// a running turn as every message does. The same words are told once, and of one helper only a few.

import { createHash } from 'node:crypto';
import type { TurnInput } from '../../agent/agent.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { AgentEvent, TurnOutcome } from '../../kernel/message/event.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { signalMessage } from './helper-messages.ts';
import {
  type HelperRun,
  MAX_SIGNALS,
  SIGNAL_NOTE,
  SUBAGENT_CHANNEL,
  signalsIn,
} from './rules/subagent.ts';
import { isForeignTurn } from './turn-taint.ts';

export type HelperSignalsDeps = {
  readonly bus: Pick<MessageBus, 'accept'>;
  readonly sessions: Pick<SessionStore, 'turn'>;
  readonly clock: Clock;
  readonly log: Logger;
  isOn(): boolean;
};

type Turn = AsyncGenerator<AgentEvent, TurnOutcome, void>;

export type HelperSignals = {
  /** The turn of a helper, listened to; `begin` begins it. */
  heard(input: TurnInput, run: HelperRun, begin: (input: TurnInput) => Turn): Turn;
};

const NAME_CHARS = 16;

export function createHelperSignals(deps: HelperSignalsDeps): HelperSignals {
  async function* listen(input: TurnInput, run: HelperRun, turn: Turn): Turn {
    const told = new Set<string>();
    let text = '';
    try {
      for (;;) {
        const step = await turn.next();
        if (step.done === true) return step.value;
        const event = step.value;
        if (event.type === 'text_delta') text += event.text;
        if (event.type === 'text_discarded') text = '';
        if (event.type === 'tool_started') {
          const news = [...new Set(signalsIn(text))].filter((said) => !told.has(said));
          for (const said of news.slice(0, MAX_SIGNALS - told.size)) {
            told.add(said);
            await report(deps, run, { input, said });
          }
          text = '';
        }
        yield event;
      }
    } finally {
      await turn.return(undefined as never);
    }
  }

  return {
    heard(input, run, begin) {
      const isBelow = run.parent.chat.channel === SUBAGENT_CHANNEL;
      if (!deps.isOn() || isBelow || run.state !== 'running') return begin(input);
      const told = withNote(input);
      return listen(told, run, begin(told));
    },
  };
}

async function report(
  { bus, sessions, clock, log }: HelperSignalsDeps,
  run: HelperRun,
  { input, said }: { readonly input: TurnInput; readonly said: string },
): Promise<void> {
  const name = createHash('sha256').update(said).digest('hex').slice(0, NAME_CHARS);
  const isForeign = await isForeignTurn(sessions, input.session, input.turnId);
  const message = signalMessage(run, { name, said, isForeign }, clock.now());
  await bus.accept([{ kind: 'queue', message }]);
  log.info('helper reported', { helper: run.id, parent: run.parent.session });
}

function withNote(input: TurnInput): TurnInput {
  const [first, ...rest] = input.messages;
  const note = [first.message.note, SIGNAL_NOTE].filter((each) => each !== undefined).join('\n\n');
  return { ...input, messages: [{ ...first, message: { ...first.message, note } }, ...rest] };
}
