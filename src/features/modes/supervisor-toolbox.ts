// The tools of a supervised turn, with what is no tool and still is recorded like a call: a task handed to
// a specialist, its work handed back, and a tool that it was not given.

import { z } from 'zod';
import { isObject, parseJson } from '../../lib/json/json.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { BoundCall, Toolbox, ToolContext, ToolOutcome } from '../../tools/tool.ts';
import { REPORT, TASK } from './rules/supervised-turn.ts';

export const NOT_OFFERED = 'tool_not_given';

const DETAIL_CHARS = 100;

const task = z.object({ agent: z.string(), instructions: z.string() });
const report = z.object({ agent: z.string(), task: z.int() });

export type Reporting = (signal: AbortSignal) => Promise<ToolOutcome>;

/** `reporting` hands back what the specialist at work wrote. */
export function supervisorToolbox(toolbox: Toolbox, reporting: Reporting): Toolbox {
  return {
    ...toolbox,
    bind(name, json) {
      if (name === NOT_OFFERED) return refused(name, toolIn(json));
      if (name === TASK) {
        const read = task.safeParse(parseJson(json));
        if (!read.success) return refused(name, name);
        const { agent, instructions } = read.data;
        const text = `The task was handed to ${agent}, whose work follows.`;
        const detail = `${agent}: ${shortened(instructions, DETAIL_CHARS)}`;
        return bound(name, json, { detail, run: async () => ({ status: 'ok', text }) });
      }
      if (name !== REPORT) return toolbox.bind(name, json);
      const read = report.safeParse(parseJson(json));
      if (!read.success) return refused(name, name);
      const run = ({ signal }: ToolContext) => reporting(signal);
      return bound(name, json, { detail: read.data.agent, run });
    },
  };
}

function toolIn(json: string): string {
  const args = parseJson(json);
  return isObject(args) && typeof args['tool'] === 'string' ? args['tool'] : 'of this name';
}

function bound(
  name: string,
  json: string,
  { detail, run }: Pick<Extract<BoundCall, { readonly kind: 'ready' }>, 'detail' | 'run'>,
): BoundCall {
  return {
    kind: 'ready',
    name,
    access: 'read',
    accessIn: () => 'read',
    isPosted: false,
    url: undefined,
    arguments: json,
    detail,
    seal: async () => undefined,
    run,
  };
}

function refused(name: string, tool: string): BoundCall {
  const text = `Error (unknown tool): you have no tool ${tool} here. Use those you were given.`;
  const outcome = { status: 'failed', text, failure: 'unknown_tool' } as const;
  return { kind: 'refused', name, outcome };
}
