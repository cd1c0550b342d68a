// The part of the configuration about several models that share the work of a turn.

import { z } from 'zod';
import { type Problems, unless } from '../../kernel/config/problems.ts';
import {
  choice,
  count,
  flag,
  seconds,
  section,
  text,
} from '../../kernel/config/settings-fields.ts';
import { SERVICES } from './rules/declared-agent.ts';
import { AGENT_MODES } from './rules/mode.ts';

const roleModel = (about: string, usual: { temperature: number; tokens: number; secs: number }) =>
  section({
    model: text().describe(about),
    temperature: z.number().min(0).max(2).default(usual.temperature),
    maxTokens: count(16, 100_000, usual.tokens).describe('Longest answer of one call.'),
    timeoutSecs: seconds(1, 600, usual.secs).describe('Longest wait for one call.'),
  });

const trioSchema = section({
  router: roleModel('Decides what is done next, e.g. a small local model.', {
    temperature: 0.2,
    tokens: 256,
    secs: 20,
  }),
  specialist: roleModel('Works on what the router hands it; empty: there is none.', {
    temperature: 0.3,
    tokens: 1024,
    secs: 90,
  }),
  strict: flag(true).describe(
    'The main model only writes and is given no tools while the router answers.',
  ),
  maxSteps: count(1, 20, 3).describe('Decisions of the router in one turn.'),
  minConfidence: z
    .number()
    .min(0)
    .max(1)
    .default(0.3)
    .describe('Below it a decision is not followed: the main model goes on with its tools.'),
  fallback: flag(true).describe('Where the router says nothing usable, plain rules decide.'),
  synthesis: flag(true).describe(
    'The main model puts the specialist’s words into its own; false: they are sent.',
  ),
  trace: flag(false).describe(
    'traces/ in the home: each decision and dispatch, with words of conversations.',
  ),
});

const delegationSchema = section({
  model: text().describe(
    'Digests long results; empty: the cheaper model of the main model’s vendor.',
  ),
  aboveChars: count(200, 1_000_000, 2000).describe('Shorter results stay as they are.'),
  maxRounds: count(1, 10, 4).describe('Calls of the runner for one result.'),
  maxTokens: count(64, 16_000, 1024).describe('Longest answer of one call.'),
  tokensPerTurn: count(1000, 10_000_000, 60_000).describe('In and out, of one turn.'),
  moneyPerTurn: z
    .number()
    .min(0)
    .max(1000)
    .default(0.01)
    .describe('In the currency of the budgets; 0: only the tokens count.'),
  timeoutSecs: seconds(1, 600, 60).describe('Longest wait for one call.'),
});

const supervisorSchema = section({
  model: text().describe('Decides who works next; empty: the main model.'),
  temperature: z.number().min(0).max(2).default(0.2),
  maxTokens: count(16, 100_000, 1024).describe('Longest decision.'),
  timeoutSecs: seconds(1, 600, 60).describe('Longest wait for one call.'),
  maxSteps: count(1, 20, 6).describe('Specialists and services asked for one message.'),
  services: z
    .array(z.enum(SERVICES))
    .max(SERVICES.length)
    .default([...SERVICES])
    .describe('Tools that it may ask itself, with a question.'),
});

export const modeFields = {
  mode: choice(AGENT_MODES, 'inline').describe(
    'inline: one model does all; the others share a turn among several. /mode changes it.',
  ),
  trio: trioSchema,
  delegation: delegationSchema,
  supervisor: supervisorSchema.describe(
    'Specialists are declared in config/agents of the home, with prompts in config/prompts.',
  ),
  circuit: section({
    failures: count(1, 100, 3).describe('In a row, before a model is left alone.'),
    cooldownSecs: seconds(1, 86_400, 300),
    probeSecs: seconds(0, 3600, 60).describe(
      'Between looks at models lately used, while one does not answer; 0: none.',
    ),
  }).describe(
    'Of the models that share the work with the main one, and of a main model that has fallback models.',
  ),
};

export type TrioConfig = z.infer<typeof trioSchema>;
export type SupervisorConfig = z.infer<typeof supervisorSchema>;

/** What the modes in which several models share a turn need of one another. */
export function modeConflicts({
  agents: { mode, trio },
}: {
  readonly agents: {
    readonly mode: string;
    readonly trio: { readonly router: { readonly model: string } };
  };
}): Problems {
  return unless(
    mode !== 'trio' || trio.router.model !== '',
    'agents.trio.router.model',
    'a trio needs a router',
    'Name a model, e.g. ollama/qwen3:1.7b, or set agents.mode to "inline".',
  );
}
