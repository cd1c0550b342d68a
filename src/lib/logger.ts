// Structured logs: fixed message strings, variables in fields, never a message body or a secret.
// Values of known secrets are replaced wherever they occur, and phone numbers are shortened above
// debug.

import { type DestinationStream, type Level, pino } from 'pino';
import { withShortNumbers } from './text/redact.ts';

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  child(fields: LogFields): Logger;
}

type LoggerOptions = {
  readonly level: Level | 'silent';
  readonly destination: DestinationStream;
  /** Replaces secrets in a finished log line. */
  readonly redact: (line: string) => string;
  /** Runs what writes a line, in order; its fields do not change until then. */
  later(write: () => void): void;
};

const MAX_FIELD_CHARS = 512;
/** The level is the first field of a line. */
const DEBUG_LINE = '{"level":"debug"';

/** An error as log fields: code, message and the chain of causes, without a vendor's stack. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error).slice(0, MAX_FIELD_CHARS);
  return {
    name: error.name,
    ...('code' in error ? { code: error.code } : {}),
    message: error.message.slice(0, MAX_FIELD_CHARS),
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}

export function createLogger(options: LoggerOptions): Logger {
  const { later } = options;
  const redacting = {
    write(line: string) {
      const shown = line.startsWith(DEBUG_LINE) ? line : withShortNumbers(line);
      options.destination.write(options.redact(shown));
    },
  };
  /** When the line happened that is being written. */
  let at = 0;
  const root = pino(
    {
      level: options.level,
      base: null,
      timestamp: () => `,"time":"${new Date(at).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: describeError },
    },
    redacting,
  );

  function loggerOf(bound: LogFields): Logger {
    const line = (level: Level) => (message: string, fields?: LogFields) => {
      if (!root.isLevelEnabled(level)) return;
      const now = Date.now();
      later(() => {
        at = now;
        root[level]({ ...bound, ...fields }, message);
      });
    };
    return {
      debug: line('debug'),
      info: line('info'),
      warn: line('warn'),
      error: line('error'),
      child: (fields) => loggerOf({ ...bound, ...fields }),
    };
  }

  return loggerOf({});
}

/** A logger without output. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};
