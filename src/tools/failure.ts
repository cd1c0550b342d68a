// A tool's failure as the sentence the model reads: what kind, what happened. Failures nobody
// expected are told in general words; their details belong in the log.

import { NanobotError, ToolError, type ToolFailureKind } from '../kernel/message/errors.ts';
import { GuardedFileError, type GuardReason } from '../lib/files/guarded-path.ts';
import { SafeFetchError, type SafeFetchReason } from '../lib/net/safe-fetch-error.ts';

export type ToolFailure = {
  readonly kind: ToolFailureKind;
  /** What happened, without the kind. */
  readonly message: string;
  readonly text: string;
  readonly isExpected: boolean;
  /** It came on the way: the same call may work a moment later. */
  readonly isTransient: boolean;
};

const KIND_BY_REASON: Readonly<Record<GuardReason, ToolFailureKind>> = {
  malformed: 'invalid_arguments',
  outside: 'blocked',
  protected: 'blocked',
  link: 'blocked',
  hard_link: 'blocked',
  not_found: 'not_found',
  not_a_file: 'invalid_arguments',
  not_a_folder: 'invalid_arguments',
  too_large: 'execution',
  no_permission: 'permission',
  no_space: 'execution',
};

const KIND_BY_FETCH: Readonly<Record<SafeFetchReason, ToolFailureKind>> = {
  bad_url: 'invalid_arguments',
  scheme: 'blocked',
  credentials: 'blocked',
  port: 'blocked',
  private_address: 'blocked',
  not_found: 'not_found',
  redirects: 'execution',
  too_large: 'execution',
  timeout: 'timeout',
  unreachable: 'execution',
  unreadable: 'execution',
};

const TRANSIENT: readonly SafeFetchReason[] = ['timeout', 'unreachable'];

export function describeFailure(error: unknown): ToolFailure {
  if (error instanceof ToolError) {
    const message = [error.message, ...(error.output === undefined ? [] : [error.output])];
    return { ...failureOf(error.kind, message.join('\n')), isTransient: error.isTransient };
  }
  if (error instanceof GuardedFileError)
    return failureOf(KIND_BY_REASON[error.reason], error.message);
  if (error instanceof SafeFetchError) {
    const isTransient = TRANSIENT.includes(error.reason);
    return { ...failureOf(KIND_BY_FETCH[error.reason], error.message), isTransient };
  }
  if (error instanceof NanobotError) return failureOf('execution', error.message);
  const text = 'the tool failed for a reason of its own; another try may fail as well';
  return { ...failureOf('execution', text), isExpected: false };
}

export function failureOf(kind: ToolFailureKind, message: string): ToolFailure {
  return {
    kind,
    message,
    text: `Error (${kind}): ${message}`,
    isExpected: true,
    isTransient: false,
  };
}
