// Builds what deals with changes of answered messages, with reactions and with /undo.

import type { Agent } from '../agent/agent.ts';
import type { MessageBus } from '../bus/bus.ts';
import { createAsides, withAsides } from '../gateway/asides.ts';
import type { Dispatcher } from '../gateway/dispatcher.ts';
import type { Questions } from '../gateway/questions.ts';
import type { LiveConfig } from './live-config.ts';

export type AsideParts = {
  readonly live: LiveConfig;
  readonly bus: MessageBus;
  readonly agent: Agent;
  readonly questions: Questions;
};

export function buildAsides(dispatcher: Dispatcher, parts: AsideParts): Dispatcher {
  const { live, ...deps } = parts;
  return withAsides(
    dispatcher,
    createAsides({ ...deps, afterAnswer: () => live.config.edits.afterAnswer }),
  );
}
