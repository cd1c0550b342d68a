// Mails that the owner answers: taken in here instead of being queued for the agent, and the words an
// owner dictates for them. All of it is on disk before anything is acknowledged; what follows is done
// by bridge-desk.ts.

import { SIDE_MODEL } from '../../agent/side-model.ts';
import { ArchiveError } from '../../channels/channel.ts';
import type { SettledVerdict } from '../../kernel/access/admission.ts';
import { parseCommand } from '../../kernel/access/command.ts';
import { nameOfLanguage } from '../../kernel/access/person.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { policyOf } from '../../kernel/intake/doors.ts';
import type { Gated } from '../../kernel/intake/group-intake.ts';
import { accountName } from '../../kernel/message/account.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { createBridgeAnswers, MAIL_SUBJECT } from './bridge-answers.ts';
import { BridgeDesk } from './bridge-desk.ts';
import {
  addMail,
  BRIDGE_SCOPE,
  type BridgedMail,
  type BridgeRows,
  changeMail,
  type MailStage,
  openBridgeRows,
  writtenIn,
} from './bridge-rows.ts';
import { createBridgeSummaries, type Summarise, summariseMail } from './bridge-summaries.ts';
import { type BridgeMode, bodyOf, isBridged, mailNoteOf } from './rules/bridge.ts';
import { dueSummary } from './rules/summary.ts';

export type MailBridgeDeps = {
  readonly rows: BridgeRows;
  readonly now: () => number;
  mode(channel: string): BridgeMode;
  /** Something changed that the desk has to look at. */
  changed(): void;
};

export type MailBridge = ReturnType<typeof createMailBridge>;

export function createMailBridge({ rows, now, mode, changed }: MailBridgeDeps) {
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
    /** Undefined where the message is for the agent. */
    take(message: InboundMessage, verdict: SettledVerdict): Gated | undefined {
      if (!isBridged(mode(accountName(message.chat)), verdict)) return undefined;
      return {
        entry: { kind: 'record', message, gate: 'shown to the owner' },
        before: () => keep(message),
      };
    },
    /** The owner's words as an answer to a mail; undefined where they are for the agent. */
    async dictated(message: InboundMessage): Promise<Gated | undefined> {
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
  if (stage.kind !== 'writing' && stage.kind !== 'drafted') return undefined;
  const before = stage.kind === 'drafted' ? stage : undefined;
  if (before?.by.includes(message.id) === true) return undefined;
  const drafted: MailStage = {
    kind: 'drafted',
    chat: stage.chat,
    text: before === undefined ? message.text : `${before.text}\n${message.text}`,
    by: [...(before?.by ?? []), message.id],
    hasFiles: before?.hasFiles === true || (message.attachments ?? []).length > 0,
    isAsked: false,
  };
  return { ...mail, round: mail.round + 1, stage: drafted };
}

export const MAIL_BRIDGE = port<MailBridge>('mail bridge');

export function install(kernel: Kernel): void {
  const { live, clock, log, bus, people, questions, channels, owners, add } = kernel;
  const ownerChat = owners.askChat;
  const state = kernel.store.scope(BRIDGE_SCOPE);
  const rows = openBridgeRows(kernel.rows);
  const changed = () => desk.changed();
  const summarise = summariserOf(kernel);
  const summaries = createBridgeSummaries({ rows, clock, log, summarise, ownerChat, changed });
  const desk = new BridgeDesk({
    ...{ rows, state, bus, clock, log, questions, ownerChat, summaries },
    async archive({ id, chat }, signal) {
      const archive = channels.get(accountName(chat))?.archive;
      if (archive === undefined) throw new ArchiveError('no_archive', 'the mailbox is not open');
      await archive(id, signal);
    },
  });
  const handler = createBridgeAnswers({
    ...{ rows, bus, clock, changed },
    timeZoneIn: async (chat) =>
      (await people.persons.inChat(chat))?.timeZone ?? live.config.sessions.timeZone,
  });
  const mode = (account: string) => policyOf(account, live.config).bridge ?? 'off';
  add.answers(MAIL_SUBJECT, handler, 'letter');
  add.task({ name: 'mails', run: (signal) => desk.run(signal) });
  kernel.provide(MAIL_BRIDGE, createMailBridge({ rows, mode, changed, now: () => clock.now() }));
}

/** In the language of its reader, and without the secrets of the configuration. */
function summariserOf(kernel: Kernel): Summarise {
  const { live, people } = kernel;
  const side = kernel.use(SIDE_MODEL);
  return async ({ readIn, text, ...mail }, signal) => {
    const tag = (await people.persons.inChat(readIn))?.language;
    const language = tag === undefined ? undefined : nameOfLanguage(tag);
    return summariseMail(side, { ...mail, text: live.redact(text), language }, signal);
  };
}
