// One question of a benchmark: what the model's service fails at is an item of its own kind, and the
// rest goes on. A stop and an empty purse end the whole.

import { shortened } from '../core/cut.ts';
import { ProviderError } from '../core/errors.ts';
import type { EvalItem } from '../core/eval/result.ts';

type Named = Pick<EvalItem, 'id' | 'group' | 'wanted'>;

const MAX_SHOWN_CHARS = 600;

/** @throws SpendingRefusedError, the signal's reason */
export async function attempt(
  named: Named,
  signal: AbortSignal,
  work: () => Promise<Omit<EvalItem, keyof Named>>,
): Promise<EvalItem> {
  try {
    const made = await work();
    return { ...named, ...made, got: shown(made.got) };
  } catch (error) {
    if (signal.aborted || !(error instanceof ProviderError)) throw error;
    const got = `${error.failure.kind}: ${shown(error.message)}`;
    return { ...named, state: 'error', got, ms: 0, counts: {} };
  }
}

export function skipped(named: Named, why: string): EvalItem {
  return { ...named, state: 'skipped', got: why, ms: 0, counts: {} };
}

function shown(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return shortened(flat, MAX_SHOWN_CHARS, ' [...]');
}
