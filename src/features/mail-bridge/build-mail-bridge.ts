// Builds what lets an owner answer mails from their chat.

import type { SideModel } from '../../agent/side-model.ts';
import { ArchiveError } from '../../channels/channel.ts';
import { nameOfLanguage } from '../../kernel/access/person.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { StateStore } from '../../kernel/bus/store/store.ts';
import type { ChannelDirectory } from '../../kernel/channels.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Contributions } from '../../kernel/contributions.ts';
import { policyOf } from '../../kernel/intake/doors.ts';
import { accountName } from '../../kernel/message/account.ts';
import type { Owners } from '../../kernel/owners.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { People } from '../people/people.ts';
import { createBridgeAnswers, MAIL_SUBJECT } from './bridge-answers.ts';
import { BridgeDesk } from './bridge-desk.ts';
import { BRIDGE_SCOPE, openBridgeRows } from './bridge-rows.ts';
import { createBridgeSummaries, type Summarise, summariseMail } from './bridge-summaries.ts';
import { createMailBridge, type MailBridge } from './mail-bridge.ts';

export type MailBridgeParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore;
  readonly rows: OpenRows;
  readonly bus: MessageBus;
  readonly people: People;
  readonly side: SideModel;
  readonly questions: Questions;
  readonly channels: ChannelDirectory;
  readonly owners: Pick<Owners, 'askChat'>;
  readonly add: Contributions;
};

export function buildMailBridge(parts: MailBridgeParts): MailBridge {
  const { live, clock, log, store, bus, people, questions, channels, add } = parts;
  const ownerChat = parts.owners.askChat;
  const state = store.scope(BRIDGE_SCOPE);
  const rows = openBridgeRows(parts.rows);
  const changed = () => desk.changed();
  const summarise = summariserOf(parts);
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
  return createMailBridge({ rows, mode, changed, now: () => clock.now() });
}

/** In the language of whoever reads it, and without what is secret here. */
function summariserOf({ live, people, side }: MailBridgeParts): Summarise {
  return async ({ readIn, text, ...mail }, signal) => {
    const tag = (await people.persons.inChat(readIn))?.language;
    const language = tag === undefined ? undefined : nameOfLanguage(tag);
    const ask = { ...mail, text: live.redact(text) };
    return summariseMail(side, language === undefined ? ask : { ...ask, language }, signal);
  };
}
