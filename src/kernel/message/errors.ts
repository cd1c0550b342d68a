// The named errors of every layer. An error says three things: a code for logs and tests, the text
// for the person (or none), and what to do now. Errors are caught in three places only: the
// toolbox, the dispatcher and `supervise`.

/** What the code that catches the error should do next. */
import { t } from '../../lib/texts.ts';

export type Remedy =
  /**
   * `isOwnRule`: forbidden by a rule of this program, not the platform, which tells the person
   * itself.
   */
  | { readonly kind: 'never'; readonly isOwnRule?: true }
  | { readonly kind: 'backoff' }
  | { readonly kind: 'after'; readonly delayMs: number };

export const NEVER: Remedy = { kind: 'never' };
export const FORBIDDEN: Remedy = { kind: 'never', isOwnRule: true };
export const BACKOFF: Remedy = { kind: 'backoff' };
export const after = (delayMs: number): Remedy => ({ kind: 'after', delayMs });

/** Base of every error this program throws on purpose. `message` is for the operator's log. */
export class NanobotError extends Error {
  override readonly name: string = 'NanobotError';
  readonly code: string;
  /** A sentence for the person in the chat; undefined if they need not know. */
  readonly userText: string | undefined;

  constructor(
    code: string,
    message: string,
    options: { readonly userText?: string; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.code = code;
    this.userText = options.userText;
  }
}

/** A request that cannot be met; `message`, for people and models, says what to do instead. */
export class RequestError extends NanobotError {
  override readonly name: string = 'RequestError';
  constructor(code: string, message: string) {
    super(code, message, { userText: message });
  }
}

/** Ends the gateway as a failure, so that its service starts it again. */
export class GatewayMustEnd extends NanobotError {
  override readonly name = 'GatewayMustEnd';
  constructor(message: string) {
    super('gateway_ends', message);
  }
}

/**
 * A failed send. `not_sent`: the platform certainly has nothing. `unknown`: the request may have
 * arrived before its response was lost.
 */
export class DeliveryError extends NanobotError {
  override readonly name = 'DeliveryError';
  readonly certainty: 'not_sent' | 'unknown';
  readonly remedy: Remedy;

  constructor(
    message: string,
    options: {
      readonly certainty: 'not_sent' | 'unknown';
      readonly remedy: Remedy;
      readonly code?: string | undefined;
      readonly cause?: unknown;
    },
  ) {
    super(options.code ?? 'delivery_failed', message, { cause: options.cause });
    this.certainty = options.certainty;
    this.remedy = options.remedy;
  }
}

export const notSent = (message: string, remedy: Remedy, code?: string, cause?: unknown) =>
  new DeliveryError(message, { certainty: 'not_sent', remedy, code, cause });

/** The bus is full: nothing was stored, so the platform must not be acknowledged. */
export class BusFullError extends NanobotError {
  override readonly name = 'BusFullError';
  constructor(message: string) {
    super('bus_full', message);
  }
}

/**
 * A channel cannot continue. `remedy` tells its supervisor whether to restart it: `never` for a
 * refused credential, `backoff` otherwise.
 */
export class ChannelError extends NanobotError {
  override readonly name = 'ChannelError';
  readonly remedy: Remedy;
  constructor(
    code: string,
    message: string,
    options: { readonly remedy: Remedy; readonly cause?: unknown },
  ) {
    super(code, message, { cause: options.cause });
    this.remedy = options.remedy;
  }
}

/** Why a model call failed; decides on retries, fallbacks and the text for the person. */
export type ProviderFailure =
  | { readonly kind: 'rate_limited'; readonly retryAfterMs?: number }
  /** `billing`: the key is valid, but the account has no credit. */
  | { readonly kind: 'auth'; readonly reason?: 'billing' }
  | { readonly kind: 'unknown_model' }
  | {
      readonly kind: 'server';
      readonly status?: number;
      readonly retryAfterMs?: number;
      /** A local server loads the model: it will answer soon. */
      readonly isLoading?: true;
    }
  | {
      readonly kind: 'network';
      /** What a proxy between us and the server refused, with the remedy. */
      readonly proxy?: string;
    }
  /** The server redirects requests to another address; nothing was sent there. */
  | { readonly kind: 'redirected'; readonly to: string }
  | { readonly kind: 'timeout'; readonly stage: 'first_token' | 'idle' | 'whole_call' }
  | {
      readonly kind: 'context_overflow';
      /** Size of the window, in tokens, if the refusal names it. */
      readonly contextTokens?: number;
    }
  | { readonly kind: 'rejected'; readonly status?: number }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'cancelled' };

export class ProviderError extends NanobotError {
  override readonly name = 'ProviderError';
  readonly failure: ProviderFailure;
  readonly provider: string;
  readonly model: string;
  constructor(
    message: string,
    options: {
      readonly failure: ProviderFailure;
      readonly provider: string;
      readonly model: string;
      readonly userText?: string;
      readonly cause?: unknown;
    },
  ) {
    const { failure, userText, cause } = options;
    super(`provider_${failure.kind}`, message, {
      ...(userText === undefined ? {} : { userText }),
      cause,
    });
    this.failure = failure;
    this.provider = options.provider;
    this.model = options.model;
  }
}

export const TOOL_FAILURE_KINDS = [
  'timeout',
  'permission',
  'not_found',
  'invalid_arguments',
  'unknown_tool',
  'execution',
  'cancelled',
  'blocked',
  // Not run yet: an approval is requested in this chat, see approvals.
  'waiting',
] as const;
export type ToolFailureKind = (typeof TOOL_FAILURE_KINDS)[number];

/**
 * A tool could not do what was requested; the toolbox turns it into a result for the model.
 * `isTransient`: a temporary error (a lost connection, no answer in time), and the same call may
 * work a moment later.
 */
export class ToolError extends NanobotError {
  override readonly name = 'ToolError';
  readonly kind: ToolFailureKind;
  readonly isTransient: boolean;
  /** Part of the result but never logged: a program's output. */
  readonly output: string | undefined;
  constructor(
    kind: ToolFailureKind,
    message: string,
    options: {
      readonly cause?: unknown;
      readonly isTransient?: boolean;
      readonly output?: string;
    } = {},
  ) {
    super(`tool_${kind}`, message, { cause: options.cause });
    this.kind = kind;
    this.isTransient = options.isTransient ?? false;
    this.output = options.output;
  }
}

/** A conversation could not be read or saved, e.g. because the disk is full. */
export class SessionError extends NanobotError {
  override readonly name = 'SessionError';
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super('session_failed', message, {
      userText: t`I cannot save our conversation right now because of a disk problem.`,
      ...options,
    });
  }
}

/** A configuration that the gateway refuses, with every problem found. */
export class ConfigError extends NanobotError {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];
  constructor(message: string, problems: readonly ConfigProblem[] = []) {
    super('config_invalid', message);
    this.problems = problems;
  }
}

/** `path` is dotted (`channels.telegram.token`), `remedy` a sentence that says what to do. */
export type ConfigProblem = {
  readonly path: string;
  readonly problem: string;
  readonly remedy: string;
  /** Its position in the file, counted from 1; undefined if it is not written there. */
  readonly line?: number;
  readonly column?: number;
};

/** Resources that the process or its machine may be short of; no message causes that. */
const SHORTAGES: Readonly<Record<string, string>> = {
  EMFILE: t`open files`,
  ENFILE: t`open files`,
  ENOMEM: 'memory',
  ENOBUFS: 'memory',
  ENOSPC: t`disk space`,
  EDQUOT: t`disk space`,
  store_full: t`disk space for its database`,
  EAGAIN: 'processes',
};
const MAX_CAUSES = 8;

/** The resource whose shortage caused this; undefined for any other error. */
export function shortageOf(error: unknown): string | undefined {
  let at: unknown = error;
  for (let depth = 0; depth < MAX_CAUSES && at instanceof Error; depth += 1) {
    if (at instanceof ShortageError) return at.what;
    const code: unknown = Reflect.get(at, 'code');
    const what = typeof code === 'string' ? SHORTAGES[code] : undefined;
    if (what !== undefined) return what;
    // Node's module loader reports it as text only.
    if (/too many open files/i.test(at.message)) return SHORTAGES['EMFILE'];
    at = at instanceof AggregateError ? at.errors[0] : at.cause;
  }
  return undefined;
}

/** Replaces an error whose text must not be stored. */
export class ShortageError extends NanobotError {
  override readonly name = 'ShortageError';
  readonly what: string;
  constructor(what: string) {
    super('shortage', t`out of ${what}`);
    this.what = what;
  }
}

/** What this process led is led by another one: nothing was written. */
export class LeadLostError extends NanobotError {
  override readonly name = 'LeadLostError';
  constructor(resource: string) {
    super('lead_lost', t`another process leads ${resource}`);
  }
}
