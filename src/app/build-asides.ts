// Builds what deals with changes of answered messages, with reactions and with /undo.

import type { Agent } from '../agent/agent.ts';
import type { MessageBus } from '../bus/bus.ts';
import type { Channel } from '../channels/channel.ts';
import type { AccountName } from '../core/account.ts';
import { createAsides, withAsides } from '../gateway/asides.ts';
import type { Dispatcher } from '../gateway/dispatcher.ts';
import type { Questions } from '../gateway/questions.ts';
import { createRedo } from '../gateway/redo.ts';
import type { Logger } from '../lib/logger.ts';
import type { LiveConfig } from './live-config.ts';

export type AsideParts = {
  readonly live: LiveConfig;
  readonly bus: MessageBus;
  readonly agent: Agent;
  readonly questions: Questions;
  readonly log: Logger;
  channel(name: AccountName): Channel | undefined;
};

export function buildAsides(dispatcher: Dispatcher, parts: AsideParts): Dispatcher {
  const { live, ...deps } = parts;
  const redo = createRedo(deps);
  return withAsides(
    dispatcher,
    createAsides({ ...deps, redo, afterAnswer: () => live.config.edits.afterAnswer }),
  );
}
