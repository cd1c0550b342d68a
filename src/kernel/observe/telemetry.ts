// CONTRACT of metrics and records. Every record is passed on once it is complete; recording never
// waits and never fails. The id of a turn is in all of them as the request id.

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
  /** The purpose: `turn`, or the kind of background work. */
  readonly role: string;
  readonly session: SessionKey;
  /** Absent for background work between turns. */
  readonly turnId?: TurnId;
  /** With its prefix. */
  readonly model: string;
  /** Address of the server, without credentials; absent if there is none. */
  readonly base?: string;
  /** `ok`, or the kind of failure. */
  readonly status: string;
  /** From the vendor's service. */
  readonly httpStatus?: number;
  /** Further data about the failure, in our own text. */
  readonly detail?: string;
  readonly usage?: TokenUsage;
  /** For a place at a local server, before it began; not part of `durationMs`. */
  readonly waitedMs?: number;
  /** In tokens; counts where the vendor named no usage. */
  readonly estimated: { readonly input: number; readonly output: number };
  /** Of a model that is monitored for drift. */
  readonly drift?: NonNullable<CallEnd['drift']>;
  /** Of a call that continued a turn. */
  readonly answer?: {
    /** Requested tool calls, and those that were run, not refused. */
    readonly requested: number;
    readonly executed: number;
    /** The answer claims an action that no tool did. */
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
  /** From the arrival of its first message to its begin. */
  readonly waitedMs: number;
  readonly outcome: 'answered' | 'stopped' | 'failed' | 'interrupted';
};

export type DeliveryRecord = Timed & {
  readonly kind: 'delivery';
  readonly account: AccountName;
  readonly messageId: MessageId;
  readonly status: 'sent' | 'not_sent' | 'unknown';
};

/** A message that was accepted, or seen before. */
type ArrivalRecord = Timed & {
  readonly kind: 'arrival';
  readonly account: AccountName;
  readonly messageId: MessageId;
  readonly status: 'queued' | 'duplicate' | 'other';
};

/** A vote on a completed step. */
export type VoteRecord = Timed & {
  readonly kind: 'vote';
  /** Decided by the pilot voters, by a lead, or not at all. */
  readonly outcome: 'gate' | 'lead' | 'undecided';
  readonly votes: number;
  /** Unusable answers. */
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

/** A value per combination of labels, read at the moment of a scrape. */
export type Gauge = {
  /** Follows `nanobot_`. */
  readonly name: string;
  readonly help: string;
  /** Labels are names of the program, never of people or chats. */
  readonly values: readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[];
};

/** The response to a scrape of `/metrics`. */
export interface MetricsPage {
  readonly contentType: string;
  render(now: readonly Gauge[]): Promise<string>;
}

/** An effect, and who approved it. */
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
  /** Recorded in the order of the calls; never waits and never fails. */
  note(event: AuditEvent): void;
}

/** The `status` of an intent; the entry with the same `call` and another status is its outcome. */
export const BEGUN = 'begun';

export interface EffectLog extends AuditLog {
  /**
   * An intent, recorded before its effect: when it resolves the entry survives this process, though
   * not a power cut, which avoids a wait for the disk. Never fails; while nothing can be written it
   * does not wait.
   */
  enter(event: AuditEvent): Promise<void>;
}
