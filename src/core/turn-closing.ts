// The last words of a turn: what the person is told for each way a turn can end, after whatever the
// model wrote. What is said of a failed provider, the provider knows best.

import type { Ending, TurnLimit, TurnLimits } from './turn-state.ts';

export type Closing = {
  readonly outcome: 'answered' | 'stopped' | 'failed';
  readonly answers: readonly string[];
};

const MS_PER_MINUTE = 60_000;

/**
 * `written` holds the texts the model wrote for the person in this turn, oldest first; `notices`, how they came
 * about.
 */
export function closingOf(
  ending: Ending,
  written: readonly string[],
  limits: TurnLimits,
  notices: readonly string[] = [],
): Closing {
  const note = noteOf(ending, limits);
  const texts = [...written.map(withoutBlankEdges), ...(note === undefined ? [] : [note])];
  const parts = texts.filter((part) => part !== '');
  const below = parts.length === 0 ? [] : notices.map((notice) => `[${notice}]`);
  const text = [...parts, ...below].join('\n\n');
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
      return ending.text;
  }
}

function limitNote(limit: TurnLimit, limits: TurnLimits): string {
  switch (limit) {
    case 'rounds':
      return `[Stopped after ${limits.maxRounds} rounds of tool use, the limit of one answer. Write "continue" to go on.]`;
    case 'tokens':
      return `[Stopped at ${limits.maxTokens.toLocaleString('en-US')} tokens, the limit of one answer. Write "continue" to go on.]`;
    case 'loop':
      return '[Stopped: the same steps came again and again and brought nothing new. Put it in other words, or write "continue" to go on.]';
    case 'time':
      return `[Stopped after ${durationText(limits.maxMs)}, the time limit of one answer. Write "continue" to go on.]`;
  }
}

function durationText(ms: number): string {
  if (ms < MS_PER_MINUTE) return `${Math.round(ms / 1000)} seconds`;
  const minutes = Math.round(ms / MS_PER_MINUTE);
  return minutes === 1 ? '1 minute' : `${minutes} minutes`;
}
