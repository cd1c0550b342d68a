// CONTRACT of what people see and do about workflows. Everybody sees their own runs, an owner who is alone
// with the agent those of all.

import type { SessionKey } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';

/** Who asks in a chat. */
export type WorkflowAsker = {
  readonly session: SessionKey;
  readonly message: InboundMessage;
  readonly isOwnerAlone: boolean;
};

/** All answers are texts for people; what cannot be done is a WorkflowError. */
export interface WorkflowDesk {
  isEnabled(): boolean;
  /** A line for each workflow; what is wrong with one stands in it. */
  list(): Promise<readonly string[]>;
  /** `typed`: the name, and inputs as key=value. */
  start(typed: string, asker: WorkflowAsker): Promise<string>;
  /** A line each, newest first. */
  runs(asker: WorkflowAsker): Promise<readonly string[]>;
  /** A run with its state as JSON, or what a workflow does. */
  show(name: string, asker: WorkflowAsker): Promise<string>;
  cancel(id: string, asker: WorkflowAsker): Promise<string>;
  /** Runs of this conversation, that of a job too, that are not over. */
  atWork(session: SessionKey): Promise<readonly { readonly id: string; readonly name: string }[]>;
  /** Ends all of these; how many there were. */
  stopAll(session: SessionKey): Promise<number>;
}
