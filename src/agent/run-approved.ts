// Runs one call that an owner has allowed: what was shown to them, or nothing.

import type { Clock } from '../lib/time/clock.ts';
import type { Toolbox, ToolOutcome } from '../tools/tool.ts';
import type { ApprovedCall } from './agent.ts';
import type { AgentSettings } from './settings.ts';

export type RunApprovedDeps = {
  readonly clock: Clock;
  toolbox(): Toolbox;
  settings(): AgentSettings;
};

const CHANGED =
  'Error (permission): the tool understands this call otherwise by now. Nothing was done.';

export async function runApproved(
  { clock, toolbox, settings }: RunApprovedDeps,
  call: ApprovedCall,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const bound = toolbox().bind(call.tool, call.arguments);
  if (bound.kind === 'refused') return bound.outcome;
  if (bound.arguments !== call.arguments) {
    return { status: 'failed', text: CHANGED, failure: 'permission' };
  }
  const { session, turnId, chat, person, rights, isTainted, seal } = call;
  let texts = 0;
  return bound.run({
    ...{ session, turnId, chat, person, rights, isTainted, seal, signal, clock, askedAt: call.at },
    workspace: settings().workspace,
    say(markdown, attachments) {
      const ordinal = texts;
      texts += 1;
      return call.say(markdown, ordinal, attachments);
    },
  });
}
