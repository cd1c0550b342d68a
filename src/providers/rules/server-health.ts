// Whether a model server on one's own machine is there, by what looking after it brought, and whether a
// model of it is ready. One failure is none: only after three in a row the server counts as down, and
// each change is told once.

export type ServerHealth = {
  readonly state: 'unknown' | 'up' | 'down';
  /** Since it answered last. */
  readonly failures: number;
};

export type HealthChange = 'went_down' | 'came_back';

/** How far a model is from answering at once. */
export type Warmth =
  | { readonly kind: 'warming' }
  | { readonly kind: 'ready'; readonly tookMs: number }
  | { readonly kind: 'failed' };

export const UNKNOWN_HEALTH: ServerHealth = { state: 'unknown', failures: 0 };
const FAILURES_UNTIL_DOWN = 3;

export function afterProbe(
  { state, failures }: ServerHealth,
  answered: boolean,
): { readonly health: ServerHealth; readonly change?: HealthChange } {
  if (answered) {
    const health: ServerHealth = { state: 'up', failures: 0 };
    return state === 'down' ? { health, change: 'came_back' } : { health };
  }
  const more = failures + 1;
  if (more < FAILURES_UNTIL_DOWN || state === 'down') return { health: { state, failures: more } };
  return { health: { state: 'down', failures: more }, change: 'went_down' };
}
