// Failures of Lark calls, distinguished by what they mean for a message. Codes are those of
// open.feishu.cn/document/server-docs/im-v1/message/create (and reply, patch, delete) and of
// open.feishu.cn/document/server-docs/getting-started/server-error-codes. No error contains a
// request.

import {
  after,
  BACKOFF,
  DeliveryError,
  NanobotError,
  NEVER,
  type Remedy,
} from '../../kernel/message/errors.ts';
import { fieldsOf, textOf } from '../../lib/json/json.ts';
import { proxyErrorIn } from '../../lib/net/proxies.ts';
import { t } from '../../lib/texts.ts';
import type { CallFailure } from '../api-calls.ts';
import { at, numberOf } from './rules/content.ts';

/** `code`: Lark's own; the HTTP status if the response has none. */
type LarkCallFailure = CallFailure<{ readonly status: number }>;

export class LarkCallError extends NanobotError {
  override readonly name = 'LarkCallError';
  readonly failure: LarkCallFailure;
  constructor(failure: LarkCallFailure) {
    super(`lark_${failure.kind}`, `Lark: ${describeFailure(failure)}`);
    this.failure = failure;
  }
}

export function describeFailure(failure: LarkCallFailure): string {
  if (failure.kind === 'refused') return `${failure.code} ${failure.description}`;
  return failure.kind === 'not_reached'
    ? t`not reachable (${failure.reason})`
    : t`no usable answer (${failure.reason})`;
}

const SERVER_ERROR = 500;
const TOO_MANY = 429;
/** Gateway, chat and tenant limits, and a message that is being sent at the moment. */
const RATE_LIMITS: readonly number[] = [99991400, 230020, 11232, 230049];
const TOKEN_REFUSED: readonly number[] = [99991661, 99991663, 99991664, 99991668, 99991677];
/** App unknown, secret wrong, app disabled in its tenant. */
const CREDENTIALS_REFUSED: readonly number[] = [10003, 10012, 10013, 10014, 10015, 99991543];
/** The message was recalled or deleted, or never existed. */
const GONE: readonly number[] = [230011, 230110, 230050, 231003];
/** The card's content was refused: its markup, its size, or a part of it. */
const CARD_REFUSED: readonly number[] = [230099, 230025, 230028, 200621];
const TOO_OLD_TO_CHANGE = 230031;
/** A failure of Lark with a request to try later: it may have created the message. */
const TRY_LATER: readonly number[] = [1500, 5000, 55001];
/** A retry has the same result: content, permission, chat, person or file are refused. */
const FINAL: readonly number[] = [
  ...[...GONE, ...CARD_REFUSED, TOO_OLD_TO_CHANGE],
  // im-v1/message: parameters, membership, availability, rights, content, tenant.
  ...[230001, 230002, 230006, 230013, 230015, 230017, 230018, 230019, 230022, 230026, 230027],
  ...[230029, 230034, 230035, 230036, 230038, 230052, 230053, 230054, 230055, 230071, 230072],
  // im-v1/chat: does not exist, dissolved, not a member.
  ...[232006, 232009, 232010, 232011, 232033],
  // im-v1/image, file and message-resource: parameters, rights, size, kind, restricted chats.
  ...[234001, 234002, 234003, 234004, 234006, 234007, 234008, 234009, 234010, 234011, 234019],
  ...[234037, 234038, 234040, 234041, 234042, 234043],
  // Gateway: a permission that the app lacks, invalid fields.
  ...[99991672, 99991679, 99992351, 99992352, 99992354, 99992402, 9499, 41050],
];
/** HTTP statuses under which an unknown code may mean a temporary failure. */
const UNCLEAR_STATUS: readonly number[] = [200, 400, 408, 425];

const isCode = (error: unknown, codes: readonly number[]) =>
  error instanceof LarkCallError &&
  error.failure.kind === 'refused' &&
  codes.includes(error.failure.code);

export const isTokenRefused = (error: unknown) => isCode(error, TOKEN_REFUSED);
export const areCredentialsRefused = (error: unknown) => isCode(error, CREDENTIALS_REFUSED);
export const isGone = (error: unknown) => isCode(error, [...GONE, TOO_OLD_TO_CHANGE]);
export const isNotThere = (error: unknown) => isCode(error, GONE);
export const isCardRefused = (error: unknown) => isCode(error, CARD_REFUSED);

/** Of a `DeliveryError`: the refusal may be temporary, so the tries are counted. */
export const UNCLEAR_REFUSAL = 'lark_unclear_refusal';

/** What a failed call means for the message it carried. `repeatable`: a second call is harmless. */
export function toDeliveryError(error: unknown, repeatable: boolean): unknown {
  if (!(error instanceof LarkCallError)) return error;
  const { failure } = error;
  const mayBeMade = (code: number) => code === 230049 || TRY_LATER.includes(code);
  const isKnown =
    failure.kind === 'not_reached' ||
    (failure.kind === 'refused' && failure.status < SERVER_ERROR && !mayBeMade(failure.code));
  const remedy = remedyFor(failure);
  return new DeliveryError(error.message, {
    certainty: isKnown || repeatable ? 'not_sent' : 'unknown',
    remedy,
    code: isUnclear(failure) ? UNCLEAR_REFUSAL : error.code,
  });
}

/** What to do about a failed call, by the meaning of its code. */
export function remedyFor(failure: LarkCallFailure): Remedy {
  if (failure.kind !== 'refused') return BACKOFF;
  if (FINAL.includes(failure.code)) return NEVER;
  if (failure.retryAfterMs !== undefined) return after(failure.retryAfterMs);
  if (isWaitedOut(failure) || isUnclear(failure)) return BACKOFF;
  return failure.status >= SERVER_ERROR ? BACKOFF : NEVER;
}

type Refused = LarkCallFailure & { readonly kind: 'refused' };

/** A rate limit, or a refused token or secret, which concerns the channel: its messages wait. */
const isWaitedOut = ({ code, status }: Refused) =>
  status === TOO_MANY || [...RATE_LIMITS, ...TOKEN_REFUSED, ...CREDENTIALS_REFUSED].includes(code);

const isUnclear = (failure: LarkCallFailure) =>
  failure.kind === 'refused' &&
  !isWaitedOut(failure) &&
  !FINAL.includes(failure.code) &&
  UNCLEAR_STATUS.includes(failure.status);

/** The error of a body that reports a refusal although the HTTP status is 200. */
export function refusalOf(body: unknown): LarkCallError | undefined {
  const code = numberOf(at(body, 'code'));
  if (code === 0) return undefined;
  if (code === undefined) {
    return new LarkCallError({ kind: 'unanswered', reason: 'HTTP 200' });
  }
  const description = textOf(at(body, 'msg')) ?? t`no reason given`;
  return new LarkCallError({ kind: 'refused', code, status: 200, description });
}

/** Codes of failures before a connection is established: nothing has left this machine. */
const NOT_REACHED =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_|ENETUNREACH|EHOSTUNREACH|CERT_|DEPTH_|UNABLE_)/;

/** Converts an error of the HTTP library, which contains the request with its secrets. */
export function callErrorOf(thrown: unknown): LarkCallError {
  if (thrown instanceof LarkCallError) return thrown;
  const response = fieldsOf(at(thrown, 'response'));
  const status = numberOf(response?.['status']);
  if (response !== undefined && status !== undefined) return refused(response, status);
  const proxy = proxyErrorIn(thrown);
  if (proxy !== undefined) return new LarkCallError({ kind: 'not_reached', reason: proxy.message });
  const code = textOf(at(thrown, 'code')) ?? t`network error`;
  if (NOT_REACHED.test(code)) return new LarkCallError({ kind: 'not_reached', reason: code });
  const reason = code === 'ERR_CANCELED' ? t`given up` : code;
  return new LarkCallError({ kind: 'unanswered', reason });
}

function refused(response: Readonly<Record<string, unknown>>, status: number): LarkCallError {
  const body = response['data'];
  const headers = response['headers'];
  const seconds = numberOf(at(headers, 'x-ogw-ratelimit-reset') ?? at(headers, 'retry-after'));
  return new LarkCallError({
    kind: 'refused',
    code: numberOf(at(body, 'code')) ?? status,
    status,
    description: textOf(at(body, 'msg')) ?? `HTTP ${status}`,
    retryAfterMs: seconds && seconds > 0 ? seconds * 1000 : undefined,
  });
}
