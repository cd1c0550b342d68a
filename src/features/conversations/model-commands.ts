// /model, /think and /queue: how the answers of one conversation are made, from its next message
// on. The page sets the same.

import {
  COSTS,
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command-access.ts';
import { QUEUE_MODES, type QueueMode } from '../../kernel/config/settings-fields.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { SessionSettings, SessionSettingsStore } from '../../kernel/turns/origins.ts';
import { t } from '../../lib/texts.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { LocalModels } from '../local-models/index.ts';

const THINK_ON_TOKENS = 10_000;
const THINK_MIN_TOKENS = 1024;
const THINK_MAX_TOKENS = 128_000;

export const MODEL_COMMANDS = {
  model: {
    summary: t`show or change the model`,
    usage: '/model [name | default]',
    access: COSTS,
    timing: 'in_order',
  },
  think: {
    summary: t`show or change how much the model thinks`,
    usage: '/think [on | off | tokens]',
    access: COSTS,
    timing: 'in_order',
  },
  queue: {
    summary: t`what happens to messages sent during an answer`,
    usage: '/queue [steer | followup | collect | interrupt]',
    access: COSTS,
    timing: 'in_order',
  },
} satisfies CommandTable;

export type ModelChoiceDeps = {
  readonly settings: SessionSettingsStore;
  models(): ModelRegistry;
  readonly local: Pick<LocalModels, 'only' | 'warmUp'>;
};

type ModelCommandDeps = ModelChoiceDeps & {
  /** For a conversation without settings of its own. */
  turnDefaults(): Required<Pick<SessionSettings, 'thinkingBudget' | 'queueMode'>>;
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
  if (argument === '') return t`The model is ${current}. Change it with /model <name>.`;
  const set = await chooseModel(session, argument, deps);
  if (set.kind === 'refused') return set.text;
  return argument === 'default'
    ? t`The model is ${set.model} again.`
    : t`From the next message on the model is ${set.model}.`;
}

type ChosenModel =
  | { readonly kind: 'chosen'; readonly model: string }
  | { readonly kind: 'refused'; readonly text: string };

/**
 * Sets the model of a conversation; `default`: none of its own.
 * @throws ProviderError for a name that nothing serves
 */
export async function chooseModel(
  session: SessionKey,
  name: string,
  { settings, models, local }: ModelChoiceDeps,
): Promise<ChosenModel> {
  if (name === 'default') {
    await settings.change(session, { model: undefined, beforeLocal: undefined });
    return { kind: 'chosen', model: models().defaultModel };
  }
  const handle = models().resolve(name);
  const refused = await local.only.refusal(session, handle.name);
  if (refused !== undefined) return { kind: 'refused', text: refused.text };
  await settings.change(session, { model: name, beforeLocal: undefined });
  local.warmUp(name);
  return { kind: 'chosen', model: handle.name };
}

async function changeThinking(
  { session }: CommandOrigin,
  argument: string,
  deps: ModelCommandDeps,
) {
  if (argument === '') {
    const chosen = await deps.settings.get(session);
    const budget = chosen.thinkingBudget ?? deps.turnDefaults().thinkingBudget;
    return budget === 0 ? t`Thinking is off.` : t`Thinking is on, up to ${budget} tokens.`;
  }
  const budget = thinkingBudgetOf(argument);
  if (budget === undefined) return t`Usage: /think on, /think off or /think <tokens>.`;
  await deps.settings.change(session, { thinkingBudget: budget });
  return budget === 0 ? t`Thinking is off.` : t`Thinking is on, up to ${budget} tokens.`;
}

function thinkingBudgetOf(argument: string): number | undefined {
  if (argument === 'off') return 0;
  if (argument === 'on') return THINK_ON_TOKENS;
  if (!/^\d+$/.test(argument)) return undefined;
  return thinkingWithin(Number(argument));
}

/** Off, or within what models accept. */
export const thinkingWithin = (tokens: number): number =>
  tokens === 0 ? 0 : Math.min(THINK_MAX_TOKENS, Math.max(THINK_MIN_TOKENS, tokens));

const QUEUE_WORDS: Readonly<Record<QueueMode, string>> = {
  steer: t`Messages sent during an answer join it.`,
  followup: t`Messages sent during an answer wait; each gets an answer of its own.`,
  collect: t`Messages sent during an answer wait; one answer for all of them follows.`,
  interrupt: t`A message sent during an answer stops it; the answer starts anew with all messages.`,
};

async function changeQueue({ session }: CommandOrigin, argument: string, deps: ModelCommandDeps) {
  const wanted = QUEUE_MODES.find((each) => each === argument);
  if (wanted !== undefined) {
    await deps.settings.change(session, { queueMode: wanted });
    return QUEUE_WORDS[wanted];
  }
  const { queueMode: mode = deps.turnDefaults().queueMode } = await deps.settings.get(session);
  return t`Messages sent during an answer: ${mode}. Change it with /queue steer, followup, collect or interrupt.`;
}
