// Points and spans of time as people read them.

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const UNITS_MS: Readonly<Record<string, number>> = {
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
};

/** `2026-01-15 12:00:00`, by the machine's time zone. */
export function momentText(atMs: number): string {
  return new Date(atMs).toLocaleString('sv-SE');
}

/** `90s`, `5m`, `3h`, `12d`: the largest unit that keeps two digits of sense. */
export function spanText(ms: number): string {
  if (ms < 2 * MINUTE_MS) return `${Math.max(0, Math.round(ms / SECOND_MS))}s`;
  if (ms < 2 * HOUR_MS) return `${Math.round(ms / MINUTE_MS)}m`;
  if (ms < 2 * DAY_MS) return `${Math.round(ms / HOUR_MS)}h`;
  return `${Math.round(ms / DAY_MS)}d`;
}

/** `7d`, `12h`, `30m` or `45s` in milliseconds; undefined where the text is no span. */
export function parseSpan(text: string): number | undefined {
  const match = /^(\d{1,6})([smhd])$/.exec(text.trim());
  if (match === null) return undefined;
  return Number(match[1]) * (UNITS_MS[match[2] ?? ''] ?? 0);
}
