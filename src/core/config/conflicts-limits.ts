// What may be wrong with limits: an exception for nobody, a call that waits before it has to.

import type { Config } from '../config.ts';
import type { ConfigProblem } from '../errors.ts';

/** Doors of our own, which need no section. */
const OWN_DOORS = ['web', 'terminal'];

export function limitConflicts({ limits, channels }: Config): readonly ConfigProblem[] {
  const known = [...Object.keys(channels), ...OWN_DOORS];
  return limits.exceptions.flatMap(({ who }, index): readonly ConfigProblem[] => {
    const [channel = '', ...id] = who.split(':');
    const names = id.length === 0 || id.join(':') !== '';
    if (known.includes(channel) && names) return [];
    const path = `limits.exceptions.${index}.who`;
    const remedy = `Write one of ${known.join(', ')}, or e.g. telegram:123456789.`;
    return [{ path, problem: `"${who}" names no channel and nobody on one`, remedy }];
  });
}

export function compactionConflicts({ agents }: Config): readonly ConfigProblem[] {
  const { softPercent, hardPercent } = agents.defaults.compaction.lossless;
  if (softPercent < hardPercent) return [];
  const problem = 'every call that may be summed up behind the answer would wait for it';
  const path = 'agents.defaults.compaction.lossless.softPercent';
  return [{ path, problem, remedy: `Make it less than hardPercent, ${hardPercent}.` }];
}
