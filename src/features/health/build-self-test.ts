// Connects the self-test with the running channels and with the chats in which an owner is reached.

import { randomBytes } from 'node:crypto';
import { chatsOf } from '../../kernel/access/person.ts';
import type { ChannelDirectory } from '../../kernel/channels.ts';
import { type AccountName, accountName, accountOf } from '../../kernel/message/account.ts';
import { chatId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { People } from '../people/people.ts';
import { type SelfTestDeps, selfTest } from './self-test.ts';
import type { SelfTest } from './self-test-routes.ts';

export type SelfTestParts = {
  readonly channels: SelfTestDeps['channels'];
  readonly running: Pick<ChannelDirectory, 'get'>;
  readonly people: Pick<People, 'persons' | 'pairing'>;
  readonly clock: Clock;
  readonly log: Logger;
};

export function buildSelfTest({ channels, running, people, clock, log }: SelfTestParts): SelfTest {
  async function ownerChat(name: AccountName): Promise<ChatRef | undefined> {
    const owners = (await people.persons.list()).filter(({ role }) => role === 'owner');
    const written = owners.flatMap(chatsOf).find((chat) => accountName(chat) === name);
    if (written !== undefined) return written;
    const { approved } = await people.pairing.list();
    const at = accountOf(name);
    const paired = approved.find(({ role, channel }) => role === 'owner' && channel === at.channel);
    return paired?.chat === undefined ? undefined : { ...at, chat: chatId(paired.chat) };
  }
  const deps = { channels, channel: running.get, ownerChat, clock, log, randomBytes };
  return (signal) => selfTest(deps, signal);
}
