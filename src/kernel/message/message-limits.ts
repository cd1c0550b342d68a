// Under which names a message is counted, and which limits the configuration sets for them: the most
// exact exception counts over that of the channel, and that over the general limits; what an owner
// allows the person themselves counts over all of it.

import type { AdmittedRole } from '../access/admission.ts';
import type { PersonLimits } from '../access/person.ts';
import type { LimitsConfig } from '../config/limits.ts';
import { type MessageLimits, ownerLimits } from '../intake/rules/fair-use.ts';
import { type InboundMessage, idsOf } from './message.ts';

/** Names of one person or one group, `channel:id`; whoever shares one of them is the same. */
export type CountNames = readonly [string, ...string[]];

/** A forged sender uses up nothing of the person it pretends to be. */
export function personNames({ sender, chat }: Pick<InboundMessage, 'sender' | 'chat'>): CountNames {
  const isSure = sender.kind === 'system' || sender.verified !== 'unverified';
  const name = (id: string) => `${chat.channel}:${isSure ? '' : 'unverified:'}${id}`;
  if (sender.kind === 'system') return [name(sender.source)];
  const [, ...others] = idsOf(sender);
  return [name(sender.id), ...others.map(name)];
}

export function groupNames({ group, chat }: InboundMessage): CountNames | undefined {
  if (group === undefined) return undefined;
  const name = (id: string) => `${chat.channel}:${id}`;
  const [first, ...others] = group.ids;
  return [name(first), ...others.map(name)];
}

/** `names`: those under which the person is known on any door; `own`: what an owner allows them. */
export function personLimits(
  message: InboundMessage,
  role: AdmittedRole,
  limits: LimitsConfig,
  names: readonly string[],
  own?: PersonLimits,
): MessageLimits {
  const { perMinute, perDay } = limits.messages;
  const standard = { perMinute, perDay, ...exceptionFor([message.chat.channel], limits) };
  return {
    ...(role === 'owner' ? ownerLimits(standard) : standard),
    ...exceptionFor(names, limits),
    ...setBy(own),
  };
}

export function groupLimits(names: CountNames, limits: LimitsConfig): MessageLimits {
  const { groupPerMinute: perMinute, groupPerDay: perDay } = limits.messages;
  return { perMinute, perDay, ...exceptionFor(names, limits) };
}

function exceptionFor(
  names: readonly string[],
  { exceptions }: LimitsConfig,
): Partial<MessageLimits> {
  return setBy(exceptions.find(({ who }) => names.includes(who)));
}

function setBy({ perMinute, perDay }: SetLimits = {}): Partial<MessageLimits> {
  return {
    ...(perMinute === undefined ? {} : { perMinute }),
    ...(perDay === undefined ? {} : { perDay }),
  };
}

type SetLimits = {
  readonly perMinute?: number | undefined;
  readonly perDay?: number | undefined;
};
