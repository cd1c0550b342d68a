// The toolbox with every call that has effects entered into the audit file: what it is, of whose turn,
// before it begins, and how it ended. Arguments stand there as their hash, what they are about in short.

import { createHash, randomUUID } from 'node:crypto';
import type { ToolAccess } from '../kernel/access/rights.ts';
import { BEGUN, type EffectLog } from '../kernel/observe/telemetry.ts';
import { headOf } from '../lib/text/cut.ts';
import type { Redactor } from '../lib/text/redact.ts';
import type { BoundCall, Toolbox, ToolOutcome } from './tool.ts';

const EFFECTS: readonly ToolAccess[] = ['write', 'rules', 'send', 'execute', 'schedule'];
const MAX_DETAIL_CHARS = 300;

export function auditedToolbox(
  toolbox: Toolbox,
  audit: EffectLog,
  redact: (text: string) => string,
): Toolbox {
  return {
    ...toolbox,
    bind(name, argumentsJson) {
      const bound = toolbox.bind(name, argumentsJson);
      return bound.kind === 'ready' ? audited(bound, audit, redact) : bound;
    },
  };
}

type Ready = Extract<BoundCall, { readonly kind: 'ready' }>;

function audited(bound: Ready, audit: EffectLog, redact: (text: string) => string): Ready {
  return {
    ...bound,
    async run(context) {
      const access = bound.accessIn({ isTainted: context.isTainted });
      if (!EFFECTS.includes(access)) return bound.run(context);
      const fields = {
        ...{ call: randomUUID(), tool: bound.name, access },
        ...{ session: context.session, turn: context.turnId, wasTainted: context.isTainted },
        about: headOf(redact(bound.detail), MAX_DETAIL_CHARS),
        argumentsSha256: createHash('sha256').update(bound.arguments).digest('hex'),
      };
      await audit.enter({ kind: 'tool_call', fields: { ...fields, status: BEGUN } });
      const outcome = await bound.run(context);
      audit.note({ kind: 'tool_call', fields: { ...fields, status: outcome.status } });
      return outcome;
    },
  };
}

// The toolbox as the agent gets it: no result of a tool, and so neither prompt nor session file,
// holds the value of a configured secret.

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
