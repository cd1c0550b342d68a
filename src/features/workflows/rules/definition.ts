// What a workflow and a capability are, once their files were read and checked (see core/workflow/file.ts).
// A capability says what a model is to do and what its answer looks like; a workflow says in which
// order steps are done, by flags of its state. How they are carried out stands in src/automation.

import type { JsonObject, JsonValue } from '../../../kernel/config/json.ts';
import type { Condition } from './condition.ts';

export type Capability = {
  readonly name: string;
  readonly description: string;
  /** With `{{ path }}` for what a step hands over. */
  readonly prompt: string;
  /** JSON Schema of the answer. */
  readonly output: JsonObject;
  /** `main`, `fast` or a name as /model takes it. */
  readonly model: string;
  /** Longest answer, in tokens. */
  readonly answerTokens: number;
  /** Answers asked for until one fits the schema. */
  readonly tries: number;
};

type StepBase = {
  readonly id: string;
  /** What the person is shown of it. */
  readonly label: string;
  readonly when?: Condition;
  /** The value it sets. */
  readonly sets: string;
  /** Tries after one that failed. */
  readonly retries: number;
  readonly onFailure: 'stop' | 'continue';
  /** How often it may be done in one run; again only where a value has changed since. */
  readonly runs: number;
  /** Told in the chat when it begins. */
  readonly say?: string;
};

export type SkillStep = StepBase & {
  readonly kind: 'llm_skill';
  readonly capability: string;
  /** By how many votes an answer has to lead, among several to the same question; left out: one is asked for. */
  readonly votes?: number;
  /** What the prompt sees beside the values of the workflow, by name; templates. */
  readonly with: JsonObject;
};

export type ToolStep = StepBase & {
  readonly kind: 'tool';
  readonly tool: string;
  /** Templates. */
  readonly arguments: JsonObject;
};

export type Step = SkillStep | ToolStep;

export type WorkflowLimits = {
  readonly steps?: number;
  readonly minutes?: number;
  readonly tokens?: number;
  /** In the currency of the budgets. */
  readonly money?: number;
};

/** JSON Schema of one input; `default` makes it one that may be left out. */
export type InputSchema = JsonObject & { readonly default?: JsonValue };

export type Workflow = {
  readonly name: string;
  readonly description: string;
  readonly inputs: Readonly<Record<string, InputSchema>>;
  readonly steps: readonly [Step, ...Step[]];
  /** Left out: complete once no step is left to do. */
  readonly complete?: Condition;
  /** Template of what is told at the end. */
  readonly result?: string;
  readonly limits: WorkflowLimits;
};

/** All a run needs: it keeps what it began with, whatever becomes of the files. */
export type Definition = {
  readonly workflow: Workflow;
  /** By name. */
  readonly capabilities: Readonly<Record<string, Capability>>;
};

// Where the files of workflows stand in the workspace. Writing there is a rule.

export const WORKFLOWS_FOLDER = 'workflows';
export const CAPABILITIES_FOLDER = 'capabilities';
