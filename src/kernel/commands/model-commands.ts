// /model, /think and /queue: how the answers of one conversation come about. What is chosen holds for
// this conversation, from its next message on.

import type { SessionSettings } from '../turns/session-settings.ts';
import type { Command, CommandDeps, CommandOrigin } from './command.ts';

const THINK_ON_TOKENS = 10_000;
const THINK_MIN_TOKENS = 1024;
const THINK_MAX_TOKENS = 128_000;

export const MODEL_COMMANDS: readonly Command[] = [
  {
    name: 'model',
    summary: 'show or change the model',
    usage: '/model [name | default]',
    timing: 'in_order',
    run: changeModel,
  },
  {
    name: 'think',
    summary: 'show or change how much the model thinks',
    usage: '/think [on | off | tokens]',
    timing: 'in_order',
    run: changeThinking,
  },
  {
    name: 'queue',
    summary: 'what messages sent during an answer do',
    usage: '/queue [steer | followup]',
    timing: 'in_order',
    run: changeQueue,
  },
];

async function changeModel({ session }: CommandOrigin, argument: string, deps: CommandDeps) {
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

async function changeThinking({ session }: CommandOrigin, argument: string, deps: CommandDeps) {
  const chosen = await deps.settings.get(session);
  if (argument === '') {
    const budget = chosen.thinkingBudget ?? deps.defaults().thinkingBudget;
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

async function changeQueue({ session }: CommandOrigin, argument: string, deps: CommandDeps) {
  const chosen: SessionSettings = await deps.settings.get(session);
  if (argument === 'steer' || argument === 'followup') {
    await deps.settings.set(session, { ...chosen, queueMode: argument });
    return argument === 'steer'
      ? 'Messages sent during an answer join it.'
      : 'Messages sent during an answer wait for the next one.';
  }
  const mode = chosen.queueMode ?? deps.defaults().queueMode;
  return `Messages sent during an answer: ${mode}. Change it with /queue steer or /queue followup.`;
}
