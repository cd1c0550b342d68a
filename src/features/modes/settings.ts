// Configuration of several models that share the work of a turn.

import { z } from 'zod';
import {
  AGENT_MODES,
  choice,
  count,
  flag,
  type Problems,
  seconds,
  section,
  text,
  unless,
} from '../../kernel/config/settings-fields.ts';
import { t } from '../../lib/texts.ts';

/** Tools that the supervisor queries directly; they are not specialists. */
export const SERVICES = ['search', 'recall', 'session_search', 'semantic_search'] as const;

const roleModel = (about: string, usual: { temperature: number; tokens: number; secs: number }) =>
  section({
    model: text().describe(about),
    temperature: z
      .number()
      .min(0)
      .max(2)
      .default(usual.temperature)
      .describe('How freely it words its answers.'),
    maxTokens: count(16, 100_000, usual.tokens).describe('Longest answer of one call.'),
    timeoutSecs: seconds(1, 600, usual.secs).describe('Longest wait for one call.'),
  });

const trioSchema = section({
  router: roleModel(t`Model that decides the next step, e.g. a small local model.`, {
    temperature: 0.2,
    tokens: 256,
    secs: 20,
  }),
  specialist: roleModel(t`Model that works on tasks from the router. Empty: none.`, {
    temperature: 0.3,
    tokens: 1024,
    secs: 90,
  }),
  strict: flag(true).describe('Give the main model no tools while the router answers.'),
  maxSteps: count(1, 20, 3).describe('Most decisions of the router in one turn.'),
  minConfidence: z
    .number()
    .min(0)
    .max(1)
    .default(0.3)
    .describe('Below this confidence the main model continues with its tools.'),
  fallback: flag(true).describe('Decide by fixed rules if the router gives no usable answer.'),
  synthesis: flag(true).describe(
    'The main model rewrites the specialist’s text. false: it is sent unchanged.',
  ),
  trace: flag(false).describe(
    'Write each decision with parts of conversations to traces/ in the home.',
  ),
});

const delegationSchema = section({
  model: text().describe(
    'Model that digests long results. Empty: the background model of the main model’s provider.',
  ),
  aboveChars: count(200, 1_000_000, 2000).describe('Results shorter than this stay unchanged.'),
  maxRounds: count(1, 10, 4).describe('Most calls of the runner for one result.'),
  maxTokens: count(64, 16_000, 1024).describe('Longest answer of one call.'),
  tokensPerTurn: count(1000, 10_000_000, 60_000).describe('Most tokens, in and out, in one turn.'),
  moneyPerTurn: z
    .number()
    .min(0)
    .max(1000)
    .default(0.01)
    .describe('Most money in one turn, in the currency of the budgets. 0: only tokens count.'),
  timeoutSecs: seconds(1, 600, 60).describe('Longest wait for one call.'),
});

const supervisorSchema = section({
  model: text().describe('Model that decides who works next. Empty: the main model.'),
  temperature: z.number().min(0).max(2).default(0.2).describe('How freely it words its answers.'),
  maxTokens: count(16, 100_000, 1024).describe('Longest decision in tokens.'),
  timeoutSecs: seconds(1, 600, 60).describe('Longest wait for one call.'),
  maxSteps: count(1, 20, 6).describe('Most specialists and services used for one message.'),
  services: z
    .array(z.enum(SERVICES))
    .max(SERVICES.length)
    .default([...SERVICES])
    .describe('Tools that the supervisor may use itself, with a question.'),
});

export const modeFields = {
  mode: choice(AGENT_MODES, 'inline').describe(
    'inline: one model does everything; the other modes share a turn among several models. /mode changes it.',
  ),
  trio: trioSchema,
  delegation: delegationSchema,
  supervisor: supervisorSchema.describe(
    t`Declare specialists in config/agents of the home, with prompts in config/prompts.`,
  ),
  circuit: section({
    failures: count(1, 100, 3).describe('Failures in a row after which a model is paused.'),
    cooldownSecs: seconds(1, 86_400, 300).describe('How long a model is paused.'),
    probeSecs: seconds(0, 3600, 60).describe(
      'Seconds between checks of recently used models while one does not answer. 0: none.',
    ),
  }).describe(
    'Pausing of failing models: those that share work with the main model, and a main model with fallback models.',
  ),
};

export type TrioConfig = z.infer<typeof trioSchema>;
export type SupervisorConfig = z.infer<typeof supervisorSchema>;

/** Checks requirements between the settings of the modes. */
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
    t`the mode trio needs a router`,
    t`Set a model, e.g. ollama/qwen3:1.7b, or set agents.mode to "inline".`,
  );
}
