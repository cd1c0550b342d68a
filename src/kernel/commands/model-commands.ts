// /model, /think and /queue: how the answers of one conversation are made. A choice holds for this conversation,
// from its next message on.

import type { ModelRegistry } from '../../providers/provider.ts';
import { COSTS } from '../access/command-access.ts';
import type { SessionKey } from '../message/ids.ts';
import type { SessionSettings, SessionSettingsStore } from '../turns/session-settings.ts';
import { type Command, type CommandOrigin, type CommandTable, commandsOf } from './command.ts';

const THINK_ON_TOKENS = 10_000;
const THINK_MIN_TOKENS = 1024;
const THINK_MAX_TOKENS = 128_000;

export const MODEL_COMMANDS = {
  model: {
    summary: 'show or change the model',
    usage: '/model [name | default]',
    access: COSTS,
    timing: 'in_order',
  },
  think: {
    summary: 'show or change how much the model thinks',
    usage: '/think [on | off | tokens]',
    access: COSTS,
    timing: 'in_order',
  },
  queue: {
    summary: 'what messages sent during an answer do',
    usage: '/queue [steer | followup]',
    access: COSTS,
    timing: 'in_order',
  },
} satisfies CommandTable;

/** What holds for a conversation that has made no choice. */
export type TurnDefaults = {
  readonly thinkingBudget: number;
  readonly queueMode: 'steer' | 'followup';
};

export type ModelCommandDeps = {
  readonly settings: SessionSettingsStore;
  models(): ModelRegistry;
  turnDefaults(): TurnDefaults;
  readonly local: {
    /** Conversations that stay on the owner's own machines. */
    readonly only: {
      /** Why this model may not be asked there. */
      refusal(session: SessionKey, model: string): Promise<{ readonly text: string } | undefined>;
    };
    warmUp(model: string): void;
  };
};

export function modelCommands(deps: ModelCommandDeps): readonly Command[] {
  return commandsOf(MODEL_COMMANDS, {
    model: (origin, argument) => changeModel(origin, argument, deps),
    think: (origin, argument) => changeThinking(origin, argument, deps),
    queue: (origin, argument) => changeQueue(origin, argument, deps),
  });
}

async function changeModel({ session }: CommandOrigin, argument: string, deps: ModelCommandDeps) {
  const chosen = await deps.settings.get(session);
  const current = chosen.model ?? deps.models().defaultModel;
  if (argument === '') return `The model is ${current}. Change it with /model <name>.`;
  if (argument === 'default') {
    await deps.settings.set(session, withoutModel(chosen));
    return `The model is ${deps.models().defaultModel} again.`;
  }
  const handle = deps.models().resolve(argument);
  const refused = await deps.local.only.refusal(session, handle.name);
  if (refused !== undefined) return refused.text;
  await deps.settings.set(session, { ...withoutModel(chosen), model: argument });
  deps.local.warmUp(argument);
  return `From the next message on the model is ${handle.name}.`;
}

function withoutModel(chosen: SessionSettings): SessionSettings {
  const { model: _model, beforeLocal: _before, ...rest } = chosen;
  return rest;
}

async function changeThinking(
  { session }: CommandOrigin,
  argument: string,
  deps: ModelCommandDeps,
) {
  const chosen = await deps.settings.get(session);
  if (argument === '') {
    const budget = chosen.thinkingBudget ?? deps.turnDefaults().thinkingBudget;
    return budget === 0 ? 'Thinking is off.' : `Thinking is on, up to ${budget} tokens.`;
  }
  const budget = thinkingBudgetOf(argument);
  if (budget === undefined) return 'Say /think on, /think off or /think with a number of tokens.';
  await deps.settings.set(session, { ...chosen, thinkingBudget: budget });
  return budget === 0 ? 'Thinking is off.' : `Thinking is on, up to ${budget} tokens.`;
}

function thinkingBudgetOf(argument: string): number | undefined {
  if (argument === 'off') return 0;
  if (argument === 'on') return THINK_ON_TOKENS;
  if (!/^\d+$/.test(argument)) return undefined;
  const tokens = Number(argument);
  return tokens === 0 ? 0 : Math.min(THINK_MAX_TOKENS, Math.max(THINK_MIN_TOKENS, tokens));
}

async function changeQueue({ session }: CommandOrigin, argument: string, deps: ModelCommandDeps) {
  const chosen: SessionSettings = await deps.settings.get(session);
  if (argument === 'steer' || argument === 'followup') {
    await deps.settings.set(session, { ...chosen, queueMode: argument });
    return argument === 'steer'
      ? 'Messages sent during an answer join it.'
      : 'Messages sent during an answer wait for the next one.';
  }
  const mode = chosen.queueMode ?? deps.turnDefaults().queueMode;
  return `Messages sent during an answer: ${mode}. Change it with /queue steer or /queue followup.`;
}
