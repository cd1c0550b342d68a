// What an owner's press below a mail, or below the answer they dictated for it, does. Each step only
// changes how far the mail is; the desk does the rest.

import type { MessageBus } from '../../kernel/bus/bus.ts';
import { messageId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import type { QuestionHandler } from '../../kernel/questions/questions.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { type BridgedMail, type BridgeRows, changeMail, type MailStage } from './bridge-rows.ts';
import { subjectOf, tomorrowMorning } from './rules/bridge.ts';

const HOUR_MS = 3_600_000;
/** After Reply, so long the next message is taken for the answer. */
const WRITING_MS = HOUR_MS / 2;
const WRITING_WORDS = 'within half an hour';

/** The kind of the questions' subject. */
export const MAIL_SUBJECT = 'mail';

export type BridgeAnswersDeps = {
  readonly rows: BridgeRows;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly clock: Pick<Clock, 'now'>;
  /** IANA zone of whoever's chat it is; empty = the machine's. */
  timeZoneIn(chat: ChatRef): Promise<string>;
  changed(): void;
};

const OVER = 'This mail was dealt with before.';

export function createBridgeAnswers(deps: BridgeAnswersDeps): QuestionHandler {
  const { rows, bus, clock, timeZoneIn, changed } = deps;

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
    async answer(rest, action) {
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
    async expired(rest) {
      await changeMail(rows, rest, (mail) => {
        if (mail.stage.kind === 'drafted') return { ...mail, stage: { kind: 'waiting' } };
        return mail.stage.kind === 'shown' ? 'done' : undefined;
      });
      changed();
    },
  };
}
