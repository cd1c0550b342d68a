// Mails that the owner answers: taken in here instead of being queued for the agent, the words an owner
// dictates for them, and what an owner presses. All of it is on disk before anything is acknowledged and only
// changes how far a mail is; what follows is done by bridge-desk.ts.

import { SIDE_MODEL } from '../../agent/side-model.ts';
import { ArchiveError } from '../../channels/channel.ts';
import type { SettledVerdict } from '../../kernel/access/admission.ts';
import { parseCommand } from '../../kernel/access/command.ts';
import { nameOfLanguage } from '../../kernel/access/person.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { policyOf } from '../../kernel/intake/doors.ts';
import { isOwnerDirect, whereNew } from '../../kernel/intake/gate.ts';
import type { Gated, IntakeStep } from '../../kernel/intake/group-intake.ts';
import { accountName } from '../../kernel/message/account.ts';
import { messageId } from '../../kernel/message/ids.ts';
import type { ChatRef, InboundMessage } from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import { BridgeDesk, MAIL_SUBJECT } from './bridge-desk.ts';
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
import {
  type BridgeMode,
  bodyOf,
  isBridged,
  mailNoteOf,
  subjectOf,
  tomorrowMorning,
} from './rules/bridge.ts';
import { dueSummary } from './rules/summary.ts';

const HOUR_MS = 3_600_000;
/** After Reply, so long the next message is taken for the answer. */
const WRITING_MS = HOUR_MS / 2;
const WRITING_WORDS = 'within half an hour';
const OVER = 'This mail was dealt with before.';

export type MailBridgeDeps = {
  readonly rows: BridgeRows;
  readonly bus: Pick<Kernel['bus'], 'send'>;
  readonly clock: Pick<Kernel['clock'], 'now'>;
  mode(channel: string): BridgeMode;
  /** IANA zone of the chat's person; empty = the machine's. */
  timeZoneIn(chat: ChatRef): Promise<string>;
  /** Something changed that the desk has to look at. */
  changed(): void;
};

export type MailBridge = ReturnType<typeof createMailBridge>;

export function createMailBridge(deps: MailBridgeDeps) {
  const { rows, bus, clock, mode, timeZoneIn, changed } = deps;

  async function keep(message: InboundMessage) {
    const note = mailNoteOf(message);
    const { id, chat, sender, text, subject = '' } = message;
    const summary = dueSummary(bodyOf(text, subject), sender);
    const due = summary === undefined ? {} : { summary };
    const stage = { kind: 'waiting' } as const;
    await addMail(rows, { id, chat, note, ...due, round: 0, stage, at: clock.now() });
    changed();
  }

  async function draft(id: string, message: InboundMessage) {
    await changeMail(rows, id, (mail) => draftedBy(mail, message));
    changed();
  }

  /** From one stage to another; true too where a crash came behind that step. */
  async function move(
    mail: BridgedMail,
    from: MailStage['kind'],
    to: (chat: ChatRef) => MailStage,
  ): Promise<boolean> {
    if (!('chat' in mail.stage)) return false;
    const next = to(mail.stage.chat);
    const isMoved = await changeMail(rows, mail.id, (now) =>
      now.stage.kind === from ? { ...now, stage: next } : undefined,
    );
    changed();
    return isMoved || mail.stage.kind === next.kind;
  }

  async function snooze(mail: BridgedMail, until: number, words: string) {
    const isMoved = await move(mail, 'shown', () => ({ kind: 'snoozed', until }));
    return isMoved ? words : OVER;
  }

  async function write(mail: BridgedMail, from: 'shown' | 'drafted') {
    const until = clock.now() + WRITING_MS;
    const isMoved = await move(mail, from, (chat) => ({ kind: 'writing', chat, until }));
    if (!isMoved) return OVER;
    return (
      `Write the answer to ${verbatim(mail.note.address)} in the chat of this mail ` +
      `${WRITING_WORDS}, as one message. ` +
      'You see it once more before it goes out.'
    );
  }

  async function send(mail: BridgedMail) {
    const { stage, id, chat, note } = mail;
    if (stage.kind !== 'drafted') return OVER;
    await bus.send({
      id: messageId(`bridge/${id}`),
      ...{ chat, markdown: stage.text, replyTo: id, isDictated: true },
    });
    await changeMail(rows, id, () => 'done');
    return `On its way to ${verbatim(note.address)}.`;
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
    /** What an owner's press below a mail, or below the answer they dictated for it, does. */
    handler: {
      async answer(rest: string, action: string) {
        const mail = await rows.mails.get(rest);
        if (mail === undefined) return OVER;
        const { stage } = mail;
        switch (action) {
          case 'reply':
            return write(mail, 'shown');
          case 'archive': {
            const isMoved = await move(mail, 'shown', (chat) => ({ kind: 'archiving', chat }));
            return isMoved ? `I archive ${subjectOf(mail.note)}.` : OVER;
          }
          case 'hour':
            return snooze(mail, clock.now() + HOUR_MS, 'I show it again in an hour.');
          case 'tomorrow': {
            const zone = 'chat' in stage ? await timeZoneIn(stage.chat) : '';
            const until = tomorrowMorning(clock.now(), zone);
            return snooze(mail, until, 'I show it again tomorrow at 9:00.');
          }
          case 'send':
            return send(mail);
          case 'edit':
            return write(mail, 'drafted');
          case 'drop': {
            const isMoved = await move(mail, 'drafted', () => ({ kind: 'waiting' }));
            return isMoved ? 'Nothing was sent. Here is the mail again.' : OVER;
          }
          default:
            return 'There is no such choice.';
        }
      },
      async expired(rest: string) {
        await changeMail(rows, rest, (mail) => {
          if (mail.stage.kind === 'drafted') return { ...mail, stage: { kind: 'waiting' } };
          return mail.stage.kind === 'shown' ? 'done' : undefined;
        });
        changed();
      },
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
  const mode = (account: string) => policyOf(account, live.config).bridge ?? 'off';
  const bridge = createMailBridge({
    ...{ rows, bus, clock, mode, changed },
    timeZoneIn: async (chat) =>
      (await people.persons.inChat(chat))?.timeZone ?? live.config.sessions.timeZone,
  });
  add.answers(MAIL_SUBJECT, bridge.handler, 'letter');
  add.task({ name: 'mails', run: (signal) => desk.run(signal) });
  for (const step of bridgeSteps(bus, bridge)) add.intake(step);
}

/** A bridged mail goes to the owner, and words that the owner dictates for one are no message for the agent. */
export function bridgeSteps(
  bus: Pick<MessageBus, 'trace'>,
  bridge: MailBridge,
): readonly IntakeStep[] {
  return [
    { name: 'mail bridge', decide: (message, verdict) => bridge.take(message, verdict) },
    {
      name: 'dictated mail',
      async decide(message, verdict) {
        if (!isOwnerDirect(message, verdict)) return undefined;
        const gated = await bridge.dictated(message);
        return gated && whereNew(bus, gated);
      },
    },
  ];
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
