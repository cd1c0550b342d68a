// The toolbox as the agent gets it: no result of a tool, and so neither prompt nor session file,
// holds the value of a configured secret.

import type { Redactor } from '../lib/redact.ts';
import type { Toolbox, ToolOutcome } from './tool.ts';

export function redactedToolbox(toolbox: Toolbox, redact: Redactor): Toolbox {
  const shown = (outcome: ToolOutcome): ToolOutcome => ({
    ...outcome,
    text: redact(outcome.text),
    ...(outcome.whole === undefined ? {} : { whole: redact(outcome.whole) }),
  });
  return {
    offered: (rights, mayUse) => toolbox.offered(rights, mayUse),
    missing: () => toolbox.missing(),
    bind(name, argumentsJson) {
      const bound = toolbox.bind(name, argumentsJson);
      if (bound.kind === 'refused') return { ...bound, outcome: shown(bound.outcome) };
      return { ...bound, run: async (context) => shown(await bound.run(context)) };
    },
  };
}
