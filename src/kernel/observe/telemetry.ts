// CONTRACT of what is measured. Every record is handed over once it is complete; whoever records
// never waits and never fails. The id of a turn goes through all of them: the request id.

import type { CallEnd } from '../../agent/agent.ts';
import type { ToolFailureKind } from '../message/errors.ts';
import type { AccountName, MessageId, SessionKey, TurnId } from '../message/ids.ts';
import type { TokenUsage } from '../message/transcript.ts';

type Timed = {
  /** When it began, epoch milliseconds. */
  readonly at: number;
  readonly durationMs: number;
};

/** One try of a model call; retries and fallbacks are calls of their own. */
export type ModelCallRecord = Timed & {
  readonly kind: 'model_call';
  /** What for: `turn`, or the side work it was. */
  readonly role: string;
  readonly session: SessionKey;
  /** Left out for side work between turns. */
  readonly turnId?: TurnId;
  /** With its prefix. */
  readonly model: string;
  /** Address of the server that was asked, without credentials; left out where none is. */
  readonly base?: string;
  /** `ok`, or the kind of failure. */
  readonly status: string;
  /** As the vendor's service said. */
  readonly httpStatus?: number;
  /** What more is known of the failure, in words of ours. */
  readonly detail?: string;
  readonly usage?: TokenUsage;
  /** For a place at a local server, before it began; no part of `durationMs`. */
  readonly waitedMs?: number;
  /** Estimate of what was answered, tokens. */
  readonly answerTokens: number;
  /** Of a model that is watched for it. */
  readonly drift?: NonNullable<CallEnd['drift']>;
  /** Of a call that went on with a turn. */
  readonly answer?: {
    /** Tool calls that were asked for, and those of them that were run, not refused. */
    readonly requested: number;
    readonly executed: number;
    /** It said that something was done which no tool did. */
    readonly isDoubted: boolean;
  };
};

type ToolCallRecord = Timed & {
  readonly kind: 'tool_call';
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly tool: string;
  readonly status: 'ok' | 'failed';
  readonly failure?: ToolFailureKind;
};

export type TurnRecord = Timed & {
  readonly kind: 'turn';
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly account: AccountName;
  readonly outcome: 'answered' | 'stopped' | 'failed' | 'interrupted';
};

export type DeliveryRecord = Timed & {
  readonly kind: 'delivery';
  readonly account: AccountName;
  readonly messageId: MessageId;
  readonly status: 'sent' | 'not_sent' | 'unknown';
};

/** A message that was taken in, or seen before. */
type ArrivalRecord = Timed & {
  readonly kind: 'arrival';
  readonly account: AccountName;
  readonly messageId: MessageId;
  readonly status: 'queued' | 'duplicate' | 'other';
};

/** A vote on a step that is over. */
export type VoteRecord = Timed & {
  readonly kind: 'vote';
  /** By what the pilot voters said, by a lead, or not at all. */
  readonly outcome: 'gate' | 'lead' | 'undecided';
  readonly votes: number;
  /** Answers that could not be used. */
  readonly flagged: number;
};

export type TelemetryRecord =
  | ModelCallRecord
  | ToolCallRecord
  | TurnRecord
  | DeliveryRecord
  | ArrivalRecord
  | VoteRecord;

export interface Telemetry {
  record(record: TelemetryRecord): void;
}

/** What is looked up at the moment of a scrape. */
export type GaugeValues = {
  readonly pendingMessages: number;
  readonly runningTurns: number;
  readonly queuedDeliveries: number;
  readonly deadMessages: number;
  readonly channels: readonly { readonly account: string; readonly isRunning: boolean }[];
};

/** What a scrape of `/metrics` gets. */
export interface MetricsPage {
  readonly contentType: string;
  render(now: GaugeValues): Promise<string>;
}

/** What was done with effects, and by whose word. */
export type AuditEvent = {
  readonly kind:
    | 'gateway'
    | 'tool_call'
    | 'approval'
    | 'letter'
    | 'person'
    | 'command'
    | 'configuration'
    | 'login';
  /** Never a text of a message, never a secret. */
  readonly fields: Readonly<Record<string, string | number | boolean>>;
};

export interface AuditLog {
  /** Kept in the order of the calls; whoever notes never waits and never fails. */
  note(event: AuditEvent): void;
}

/** The `status` of an intent; the entry with the same `call` and another status is its outcome. */
export const BEGUN = 'begun';

export interface EffectLog extends AuditLog {
  /**
   * An intent, before its effect: when it resolves the entry outlives this process, though not a power
   * cut, which costs no wait for the disk. Never fails; while nothing can be written it does not wait.
   */
  enter(event: AuditEvent): Promise<void>;
}
