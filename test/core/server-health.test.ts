import { describe, expect, it } from 'vitest';
import { afterProbe, UNKNOWN_HEALTH } from '../../src/providers/rules/provider-failure.ts';

/** What is told after each look, in order. */
function told(...looks: readonly boolean[]) {
  let health = UNKNOWN_HEALTH;
  const changes = looks.map((answered) => {
    const after = afterProbe(health, answered);
    health = after.health;
    return after.change;
  });
  return { changes, state: health.state };
}

describe('the health of a local server', () => {
  it('is down only after three failures in a row, and that is told once', () => {
    expect(told(true, false, false, true, false, false)).toEqual({
      changes: Array(6).fill(undefined),
      state: 'up',
    });
    const down = told(false, false, false, false, false);
    expect(down.changes).toEqual([undefined, undefined, 'went_down', undefined, undefined]);
    expect(down.state).toBe('down');
  });

  it('is told once to be back, and can be lost again', () => {
    const { changes } = told(false, false, false, true, true, false, false, false);
    expect(changes.filter((change) => change !== undefined)).toEqual([
      'went_down',
      'came_back',
      'went_down',
    ]);
  });
});
