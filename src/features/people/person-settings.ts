// Changes the settings of a person by what an owner typed: the flags of `nanobot people set`, which the
// HTTP API takes too.

import { LOCAL_CHANNELS } from '../../channels/local-channel.ts';
import type { AdmittedRole } from '../../kernel/access/admission.ts';
import {
  type Conversations,
  chatsOf,
  languageTag,
  PERSON_LIMITS,
  type Person,
  type PersonRecord,
  personChannelOf,
  readLimit,
  withChoice,
  withLimit,
} from '../../kernel/access/person.ts';
import { APPROVAL_POLICIES, type ApprovalPolicy, AUTOMATIC } from '../../kernel/access/rights.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { sessionKeyOf } from '../../kernel/message/message.ts';
import type { People } from '../../kernel/people/people.ts';
import { t } from '../../lib/texts.ts';
import { quietHoursOf } from '../../lib/time/quiet-hours.ts';
import { isTimeZone } from '../../lib/time/zone-time.ts';

/** As commander passes them; the other flags are limits. */
export type PersonFlags = {
  readonly name?: string;
  readonly role?: AdmittedRole | 'blocked';
  readonly channel?: string;
  /** The earlier name of `channel`. */
  readonly door?: string;
  readonly conversations?: Conversations;
  readonly [flag: string]: string | undefined;
};

/** A value that cannot be set; nothing was changed. */
export class SettingError extends NanobotError {
  override readonly name = 'SettingError';

  constructor(message: string, code = 'invalid_setting') {
    super(code, message);
  }
}

/** @throws SettingError where nothing is to be changed or a value is invalid */
export async function setPerson(
  people: Pick<People, 'persons' | 'pairing'>,
  { id, doors, name }: Person,
  flags: PersonFlags,
): Promise<void> {
  const changes = changesOf(flags);
  const isOfThisMachine = LOCAL_CHANNELS.some((local) => personChannelOf({ doors }, local.channel));
  if (flags.role === 'blocked' && isOfThisMachine)
    throw new SettingError(t`the person who uses this machine cannot be blocked`);
  await people.persons.change(id, (record) =>
    changes.reduce((changed, change) => change(changed), record),
  );
  if (flags.role === 'blocked') {
    for (const { channel, ids } of doors) await people.pairing.block({ channel, ids, name });
  } else if (flags.role !== undefined) await people.pairing.approveAll({ doors, name }, flags.role);
}

type Change = (record: PersonRecord) => PersonRecord;

/** By flag: the field, its parser, and the error text for an invalid value. */
const CHOICES = {
  language: ['language', languageTag, () => t`Unknown language. Try: de, en, fr`],
  timezone: ['timeZone', zoneNamed, (typed) => t`Unknown time zone ${typed}. Try: Europe/Berlin`],
  approvals: [
    'approvals',
    policyNamed,
    (typed) => t`Unknown policy ${typed}. Try: ${APPROVAL_POLICIES.join(', ')}`,
  ],
  quiet: ['quietHours', quietHoursOf, (typed) => t`Invalid hours ${typed}. Try: 22:00-07:00`],
} as const satisfies Readonly<
  Record<
    string,
    readonly [
      field: keyof PersonRecord,
      read: (typed: string) => string | undefined,
      problem: (typed: string) => string,
    ]
  >
>;

function policyNamed(typed: string): ApprovalPolicy | undefined {
  return APPROVAL_POLICIES.find((policy) => policy === typed);
}

function zoneNamed(typed: string): string | undefined {
  return isTimeZone(typed) ? typed : undefined;
}

/** @throws SettingError where nothing is to be changed or a value is invalid */
function changesOf(flags: PersonFlags): readonly Change[] {
  const { name, role, conversations } = flags;
  const channel = flags.channel ?? flags.door;
  const changes: Change[] = [];
  if (name !== undefined) changes.push((record) => ({ ...record, name }));
  for (const [flag, [field, read, problem]] of Object.entries(CHOICES)) {
    const typed = flags[flag];
    if (typed === undefined) continue;
    const value = typed === AUTOMATIC ? undefined : read(typed);
    if (typed !== AUTOMATIC && value === undefined) {
      throw new SettingError(problem(typed));
    }
    changes.push((record) => withChoice(record, field, value));
  }
  if (channel !== undefined) changes.push((record) => withPreferredChannel(record, channel));
  if (conversations !== undefined) {
    changes.push((record) => withConversations(record, conversations));
  }
  changes.push(...limitChanges(flags));
  if (changes.length === 0 && role === undefined) {
    throw new SettingError(t`There is nothing to change`);
  }
  return changes;
}

/** @throws SettingError where the person does not have this channel */
function withPreferredChannel(record: PersonRecord, typed: string): PersonRecord {
  const channel = personChannelOf(record, typed);
  if (channel === undefined && typed !== AUTOMATIC) {
    throw new SettingError(t`this person has no channel ${typed}`);
  }
  return withChoice(record, 'preferredDoor', channel?.channel);
}

/** @throws SettingError where there is nothing to share yet */
function withConversations(record: PersonRecord, conversations: Conversations): PersonRecord {
  if (conversations === 'each')
    return { ...withChoice(record, 'session', undefined), conversations };
  const [chat] = chatsOf(record);
  if (chat === undefined) throw new SettingError(t`this person has no chat yet`);
  return { ...record, conversations, session: record.session ?? sessionKeyOf(chat) };
}

/** @throws SettingError where the value of a limit is invalid */
function limitChanges(flags: PersonFlags): readonly Change[] {
  return PERSON_LIMITS.flatMap((limit) => {
    // As commander spells it.
    const flag = limit.name.replace(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase());
    const typed = flags[flag];
    if (typed === undefined) return [];
    const value = readLimit(limit, typed);
    if (typed !== AUTOMATIC && value === undefined) {
      throw new SettingError(t`"${typed}" is not a number of ${limit.words}`);
    }
    return [
      (record: PersonRecord) =>
        withChoice(record, 'limits', withLimit(record.limits, limit, value)),
    ];
  });
}
