// What an owner allows for longer than once: exactly one call, or letters to exactly these people, for
// one person in one conversation. It holds for some days, while whoever gave it still is an owner who may
// do that, and after words of others only where it was given after such. Cases A07, X04 and X06.

import { messageId } from '../../kernel/message/ids.ts';
import type { ChatRef, InboundMessage, PersonSender } from '../../kernel/message/message.ts';
import type { EffectLog } from '../../kernel/observe/telemetry.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import type { Origins } from '../../kernel/turns/origins.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { endOf, type ShownYes, shortId, shownYeses, takeBack } from './standing-list.ts';
import {
  eraseStanding,
  expireStanding,
  keyOfStanding,
  noteUse,
  type StandingCall,
  type StandingRows,
  type StandingYes,
} from './standing-rows.ts';

export type StandingDeps = {
  readonly rows: StandingRows;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
  readonly audit: EffectLog;
  /** Who somebody is now, and what they may have done. */
  origins: Origins;
  /** For how many days a yes is given; 0: for none, and none counts. */
  days(): number;
  /** Where an owner decides who is in no chat. */
  readonly outsideChats: ChatRef;
};

/** Whether the conversation of now shows words of others. */
type Now = { readonly isTainted: boolean };

export interface Standing {
  days(): number;
  /** Whether it is allowed already; the use is entered in the audit before this resolves. */
  covers(call: StandingCall & Now): Promise<boolean>;
  /** A repeat changes nothing but the day it begins. `at`: left out outside of any chat. */
  give(
    call: StandingCall & Now & Pick<StandingYes, 'about' | 'asker'>,
    by: PersonSender,
    at: ChatRef | undefined,
  ): Promise<void>;
  /** What holds now, oldest first. */
  list(): Promise<readonly ShownYes[]>;
  /** What holds the words, given in these conversations; how many. */
  forget(chats: readonly string[], holds: Holds): Promise<number>;
  /** How many; `several`: the id is the beginning of several. */
  takeBack(typed: string): Promise<number | 'several'>;
}

export function createStanding(deps: StandingDeps): Standing {
  const { rows, clock, log, audit } = deps;

  async function covers(call: StandingCall & Now): Promise<boolean> {
    const { isTainted, session, tool } = call;
    const days = deps.days();
    const yes = days === 0 ? undefined : await rows.yeses.get(keyOfStanding(call));
    if (yes === undefined || (isTainted && !yes.evenTainted)) return false;
    const now = clock.now();
    if (now >= endOf(yes, days)) return false;
    if (!(await isStillTheirs(yes))) {
      log.warn('a standing yes counts no more: who gave it may not now', { tool, session });
      return false;
    }
    const fields = { subject: 'standing', action: 'used', about: shortId(yes), by: yes.by.id };
    await audit.enter({ kind: 'approval', fields: { ...fields, tool, session, isTainted } });
    await noteUse(rows, yes.id, now);
    log.info('call allowed by a standing yes', { tool, session });
    return true;
  }

  /** Nobody gives for good what they cannot give now. */
  async function isStillTheirs({ by, at, access }: StandingYes): Promise<boolean> {
    const { isOwnerHere, rights } = await deps.origins(asMessage(by, at, clock.now()));
    return isOwnerHere && rights[access] !== 'never';
  }

  return {
    days: () => deps.days(),
    covers,
    async give({ isTainted, pattern, seal, ...call }, by, at = deps.outsideChats) {
      const id = keyOfStanding({ ...call, pattern, ...(seal === undefined ? {} : { seal }) });
      const known = await rows.yeses.get(id);
      const now = clock.now();
      const isKnown = known !== undefined && now < endOf(known, deps.days());
      const evenTainted = isTainted || (isKnown && known.evenTainted);
      const yes: StandingYes = {
        ...call,
        id,
        by,
        at,
        evenTainted,
        givenAt: now,
        days: deps.days(),
      };
      await rows.yeses.change(id, () => yes);
      await expireStanding(rows, now);
      const fields = { subject: 'standing', action: 'given', about: shortId(yes), by: by.id };
      const { tool, session } = call;
      audit.note({ kind: 'approval', fields: { ...fields, tool, session, isTainted } });
    },
    list: () => shownYeses(rows, deps.days(), clock.now()),
    forget: (chats, holds) => eraseStanding(rows, chats, holds),
    takeBack: (typed) => takeBack(rows, typed),
  };
}

/** As if they wrote there now, alone with the agent. */
function asMessage(sender: PersonSender, chat: ChatRef, now: number): InboundMessage {
  const times = { sentAt: now, receivedAt: now };
  return { id: messageId('standing'), chat, sender, addressing: 'direct', text: '', ...times };
}

/** The one asker of a call: nobody where several ask, or what asks is never there again. */
export function askerKey(messages: readonly Pick<InboundMessage, 'sender' | 'chat'>[]) {
  const keys = new Set(messages.map(keyOf));
  const [key] = keys;
  return keys.size === 1 ? key : undefined;
}

function keyOf({ sender, chat }: Pick<InboundMessage, 'sender' | 'chat'>): string | undefined {
  if (sender.kind === 'person') {
    return sender.verified === 'unverified' ? undefined : `${chat.channel}:${sender.id}`;
  }
  switch (sender.source) {
    case 'heartbeat':
      return sender.source;
    // A job has a conversation of its own; what comes of a yes goes on with what was asked.
    case 'cron':
    case 'approval':
    case 'draft':
      return sender.paidBy?.[0];
    case 'subagent':
    case 'workflow':
    case 'webhook':
      return undefined;
  }
}
