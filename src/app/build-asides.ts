// Builds what deals with changes of answered messages, with reactions and with /undo.

import type { Agent } from '../agent/agent.ts';
import type { Channel } from '../channels/channel.ts';
import type { MessageBus } from '../kernel/bus/bus.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import type { AccountName } from '../kernel/message/account.ts';
import type { Questions } from '../kernel/questions/questions.ts';
import { createAsides, withAsides } from '../kernel/turns/asides.ts';
import type { Dispatcher } from '../kernel/turns/dispatcher.ts';
import { createRedo } from '../kernel/turns/redo.ts';
import type { Logger } from '../lib/logger.ts';

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
