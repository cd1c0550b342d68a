// The last words of a turn: what the person is told for each way a turn can end, after whatever the
// model wrote. Honest and short; never a code, a stack or a path.

import type { ProviderFailure } from './errors.ts';
import type { Ending, TurnLimits } from './turn-state.ts';

export type Closing = {
  readonly outcome: 'answered' | 'stopped' | 'failed';
  readonly answers: readonly string[];
};

const MS_PER_MINUTE = 60_000;

/** `written` holds the texts the model wrote for the person in this turn, oldest first. */
export function closingOf(ending: Ending, written: readonly string[], limits: TurnLimits): Closing {
  const note = noteOf(ending, limits);
  const texts = [...written.map(withoutBlankEdges), ...(note === undefined ? [] : [note])];
  const text = texts.filter((part) => part !== '').join('\n\n');
  return { outcome: outcomeOf(ending), answers: text === '' ? [] : [text] };
}

/** The indent of the first line stays. */
function withoutBlankEdges(text: string): string {
  return text.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd();
}

function outcomeOf(ending: Ending): Closing['outcome'] {
  switch (ending.kind) {
    case 'answered':
    case 'refused':
      return 'answered';
    case 'stopped':
      return 'stopped';
    case 'empty':
    case 'limit':
    case 'failed':
      return 'failed';
  }
}

function noteOf(ending: Ending, limits: TurnLimits): string | undefined {
  switch (ending.kind) {
    case 'answered':
      return ending.cut ? '[Cut at the length limit. Write "continue" for the rest.]' : undefined;
    case 'stopped':
      return undefined;
    case 'empty':
      return 'The model gave no answer, also when asked again. Please put it in other words.';
    case 'refused':
      return 'The model declined to answer this.';
    case 'limit':
      return limitNote(ending.limit, limits);
    case 'failed':
      return failureNote(ending.failure, ending.model);
  }
}

function limitNote(limit: 'rounds' | 'tokens' | 'time', limits: TurnLimits): string {
  switch (limit) {
    case 'rounds':
      return `[Stopped after ${limits.maxRounds} rounds of tool use, the limit of one answer. Write "continue" to go on.]`;
    case 'tokens':
      return `[Stopped at ${limits.maxTokens.toLocaleString('en-US')} tokens, the limit of one answer. Write "continue" to go on.]`;
    case 'time':
      return `[Stopped after ${durationText(limits.maxMs)}, the time limit of one answer. Write "continue" to go on.]`;
  }
}

function durationText(ms: number): string {
  if (ms < MS_PER_MINUTE) return `${Math.round(ms / 1000)} seconds`;
  const minutes = Math.round(ms / MS_PER_MINUTE);
  return minutes === 1 ? '1 minute' : `${minutes} minutes`;
}

function failureNote(failure: ProviderFailure, model: string): string {
  switch (failure.kind) {
    case 'rate_limited':
      return `The provider of ${model} is limiting my requests. Please try again in a few minutes.`;
    case 'auth':
      return `The provider of ${model} refused my key. Its apiKey in the configuration needs a look.`;
    case 'unknown_model':
      return `No configured provider serves the model ${model}. Choose another with /model.`;
    case 'server':
      return `The provider of ${model} had an error and did not recover. Please try again later.`;
    case 'network':
      return `I could not reach the provider of ${model}. Please try again later.`;
    case 'timeout':
      return `${model} took too long to answer. Please try again.`;
    case 'context_overflow':
      return `This conversation is too long for ${model}. Begin a new one with /new.`;
    case 'rejected':
      return `The provider of ${model} rejected the request. If that goes on, begin anew with /new.`;
    case 'malformed':
      return `The provider of ${model} answered something I could not read. Please try again.`;
    case 'cancelled':
      return 'The answer was broken off. Please try again.';
  }
}
