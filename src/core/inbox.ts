// What the agent may look up in a mailbox of its owner's: the newest mails, or those that hold words.

export type InboxQuestion = {
  /** Each stands somewhere in the mail; none: whatever is newest. */
  readonly words: readonly string[];
  readonly isUnreadOnly: boolean;
  readonly count: number;
};

export type InboxMail = {
  /** Good for `read` of the same mailbox. */
  readonly id: string;
  readonly from: string;
  readonly subject: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly isUnread: boolean;
};

export type InboxText = InboxMail & {
  /** Visible text with what it quotes. */
  readonly text: string;
  readonly attachments: readonly string[];
};
