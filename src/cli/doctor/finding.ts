// What one check of the doctor found.

export type Finding = {
  readonly check: string;
  readonly level: 'ok' | 'warn' | 'fail';
  readonly text: string;
  /** What a person should do; where there is something to do. */
  readonly remedy?: string;
  /** Mends it; only ever local permissions. */
  readonly fix?: () => Promise<void>;
};

export const ok = (check: string, text: string): Finding => ({ check, level: 'ok', text });

const trouble =
  (level: 'warn' | 'fail') =>
  (check: string, text: string, remedy: string): Finding => ({ check, level, text, remedy });

export const warn = trouble('warn');
export const fail = trouble('fail');
