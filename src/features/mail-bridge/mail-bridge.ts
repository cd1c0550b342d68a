// Mails that the owner answers: taken in here instead of being queued for the agent, and the words an
// owner dictates for them. All of it is on disk before anything is acknowledged; what follows is done
// by bridge-desk.ts.

import type { SettledVerdict } from '../../kernel/access/admission.ts';
import { parseCommand } from '../../kernel/access/command.ts';
import type { Gated } from '../../kernel/intake/group-intake.ts';
import { accountName } from '../../kernel/message/account.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import {
  addMail,
  type BridgedMail,
  type BridgeRows,
  changeMail,
  writtenIn,
} from './bridge-rows.ts';
import { type BridgeMode, bodyOf, isBridged, mailNoteOf } from './rules/bridge.ts';
import { dueSummary } from './rules/summary.ts';

export type MailBridgeDeps = {
  readonly rows: BridgeRows;
  readonly now: () => number;
  mode(channel: string): BridgeMode;
  /** Something changed that the desk has to look at. */
  changed(): void;
};

export interface MailBridge {
  /** Undefined where the message is for the agent. */
  take(message: InboundMessage, verdict: SettledVerdict): Gated | undefined;
  /** The owner's words as an answer to a mail; undefined where they are for the agent. */
  dictated(message: InboundMessage): Promise<Gated | undefined>;
}

export function createMailBridge({ rows, now, mode, changed }: MailBridgeDeps): MailBridge {
  async function keep(message: InboundMessage) {
    const note = mailNoteOf(message);
    const { id, chat, sender, text, subject = '' } = message;
    const summary = dueSummary(bodyOf(text, subject), sender);
    const due = summary === undefined ? {} : { summary };
    const stage = { kind: 'waiting' } as const;
    await addMail(rows, { id, chat, note, ...due, round: 0, stage, at: now() });
    changed();
  }

  async function draft(id: string, message: InboundMessage) {
    await changeMail(rows, id, (mail) => draftedBy(mail, message));
    changed();
  }

  return {
    take(message, verdict) {
      if (!isBridged(mode(accountName(message.chat)), verdict)) return undefined;
      return {
        entry: { kind: 'record', message, gate: 'shown to the owner' },
        before: () => keep(message),
      };
    },
    async dictated(message) {
      const mail = await writtenIn(rows, message.chat, message.id);
      const isForAgent = message.text.trim() === '' || parseCommand(message.text) !== undefined;
      if (mail === undefined || isForAgent) return undefined;
      return {
        entry: { kind: 'record', message, gate: 'words for a mail' },
        counts: { role: 'owner', as: 'command' },
        before: () => draft(mail.id, message),
      };
    },
  };
}

/** Two messages handed over together are one answer. */
function draftedBy(mail: BridgedMail, message: InboundMessage): BridgedMail | undefined {
  const { stage } = mail;
  const hasFiles = (message.attachments ?? []).length > 0;
  if (stage.kind === 'writing') {
    const { chat } = stage;
    const first = { chat, text: message.text, by: [message.id], hasFiles, isAsked: false };
    return { ...mail, round: mail.round + 1, stage: { kind: 'drafted', ...first } };
  }
  if (stage.kind !== 'drafted' || stage.by.includes(message.id)) return undefined;
  return {
    ...mail,
    round: mail.round + 1,
    stage: {
      ...stage,
      text: `${stage.text}\n${message.text}`,
      by: [...stage.by, message.id],
      hasFiles: stage.hasFiles || hasFiles,
      isAsked: false,
    },
  };
}
