// CONTRACT of a benchmark: what it asks, whom, and what it makes of the answers. It knows no
// configuration, no home and no channel.

import type { Clock } from '../../lib/time/clock.ts';
import type { ModelRequest } from '../../providers/provider.ts';
import type { EvalItem, EvalPlot, EvalResult } from './rules/result.ts';

export type Question = {
  readonly system: string;
  /** Turn by turn; the last is what is asked. */
  readonly said: readonly { readonly role: 'user' | 'assistant'; readonly text: string }[];
  readonly temperature: NonNullable<ModelRequest['temperature']>;
};

export type Reply = {
  readonly text: string;
  /** The model ran out of room. */
  readonly isCut: boolean;
  readonly ms: number;
};

/** The model alone. */
export interface Subject {
  /** As configured, with its prefix. */
  readonly model: string;
  readonly contextTokens: number;
  /** Tokens of an answer. */
  readonly maxTokens: number;
  /** @throws ProviderError, SpendingRefusedError, the signal's reason */
  ask(question: Question, signal: AbortSignal): Promise<Reply>;
}

export type TurnReport = {
  readonly outcome: 'answered' | 'stopped' | 'failed';
  readonly answer: string;
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly failedToolCalls: number;
  readonly tokens: number;
  readonly ms: number;
  /** No more money: why. */
  readonly refusal?: string;
};

/** The whole agent with its tools, in a workspace that is thrown away. */
export interface Workbench {
  write(files: Readonly<Record<string, string>>): Promise<void>;
  /** Removes what lies below the folder. */
  clear(folder: string): Promise<void>;
  /** What lies below the folder, by path below the workspace. */
  read(folder: string): Promise<ReadonlyMap<string, string>>;
  /** One turn of a conversation; those of the same name follow each other. */
  turn(conversation: string, text: string, signal: AbortSignal): Promise<TurnReport>;
}

export type Trial = {
  readonly subject: Subject;
  readonly clock: Clock;
  /** Made when it is first asked for. */
  workbench(): Promise<Workbench>;
};

export type Summary = {
  readonly figures: Readonly<Record<string, number>>;
  readonly plots: readonly EvalPlot[];
};

export type Benchmark = Pick<EvalResult, 'benchmark' | 'variant' | 'seed' | 'options'> & {
  /** How many items there will be. */
  readonly planned: number;
  /** What guessing gives. */
  readonly chance?: number;
  /** An item for each answer. @throws as `ask` */
  run(trial: Trial, signal: AbortSignal): AsyncGenerator<EvalItem, void, void>;
  summary(items: readonly EvalItem[]): Summary;
};
