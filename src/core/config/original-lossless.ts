// Takes over from the original's config.json what it said of lossless compaction: shares are percents here.

import { valueAt, withoutValue, withValue } from '../json-paths.ts';
import type { JsonObject } from './json.ts';

const COMPACTION = 'agents.defaults.compaction';
const SHARES = [
  ['tauSoft', 'softPercent'],
  ['tauHard', 'hardPercent'],
] as const;

export function takeLossless(original: JsonObject): {
  readonly raw: JsonObject;
  readonly notes: readonly string[];
} {
  const notes: string[] = [];
  let raw = original;
  if (valueAt(raw, 'lcm.enabled') === true) {
    raw = withValue(withoutValue(raw, 'lcm.enabled'), `${COMPACTION}.engine`, 'lossless');
    notes.push(`lcm.enabled is now ${COMPACTION}.engine`);
  }
  for (const [from, to] of SHARES) {
    const share = valueAt(raw, `lcm.${from}`);
    if (typeof share !== 'number') continue;
    const percent = Math.min(95, Math.max(10, Math.round(share * 100)));
    raw = withValue(withoutValue(raw, `lcm.${from}`), `${COMPACTION}.lossless.${to}`, percent);
    notes.push(`lcm.${from} is now ${COMPACTION}.lossless.${to}, in percent`);
  }
  return { raw, notes };
}
