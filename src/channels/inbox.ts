// CONTRACT of a mailbox that can be looked into.

import { NanobotError } from '../core/errors.ts';
import type { InboxMail, InboxQuestion, InboxText } from '../core/inbox.ts';

/** A mailbox of the owner's that the agent may look into at their word; nothing in it changes. */
export interface Inbox {
  /** Newest first. @throws InboxError */
  find(question: InboxQuestion, signal: AbortSignal): Promise<readonly InboxMail[]>;
  /** @throws InboxError */
  read(id: string, signal: AbortSignal): Promise<InboxText>;
}

/** `message` is fit for the model and for people. */
export class InboxError extends NanobotError {
  override readonly name = 'InboxError';
  constructor(message: string, cause?: unknown) {
    super('inbox', message, { cause });
  }
}
