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
  const redacting = {
    write(line: string) {
      const shown = line.startsWith(DEBUG_LINE) ? line : withShortNumbers(line);
      options.destination.write(options.redact(shown));
    },
  };
  const root = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: describeError },
    },
    redacting,
  );
  return wrap(root);
}

/** A logger without output. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};

function wrap(target: pino.Logger): Logger {
  return {
    debug: (message, fields = {}) => target.debug(fields, message),
    info: (message, fields = {}) => target.info(fields, message),
    warn: (message, fields = {}) => target.warn(fields, message),
    error: (message, fields = {}) => target.error(fields, message),
    child: (fields) => wrap(target.child(fields)),
  };
}
