// Configuration of what the gateway does unprompted: jobs, the heartbeat, notices, quiet hours, and
// questions for newer versions.

import { z } from 'zod';
import { count, flag, section } from '../../kernel/config/settings-fields.ts';
import { workChannel } from '../../kernel/message/message.ts';
import { HOURS_PATTERN, QUIET_PATTERN } from '../../lib/time/zone-time.ts';

/** At the top of the workspace. */
export const HEARTBEAT_FILE = 'HEARTBEAT.md';

export const { channel: JOB_CHANNEL, chatOf: jobChat, sessionOf: jobSession } = workChannel('cron');

const OPTIONAL_HOURS = new RegExp(`^$|${HOURS_PATTERN.source}`);
const hours = () =>
  z.string().regex(OPTIONAL_HOURS, 'Write hours and minutes, e.g. 22:00-07:00').default('');

export const cronSchema = z.strictObject({
  enabled: flag(true).describe('Run scheduled jobs. false: they wait.'),
  maxFailures: count(1, 1000, 10).describe('Failed runs in a row after which a job is disabled.'),
});

export const heartbeatSchema = z.strictObject({
  enabled: flag(true).describe(
    'Check HEARTBEAT.md in the workspace regularly. No model is used while it contains no task.',
  ),
  everyMins: count(1, 10_080, 30).describe('Minutes between two checks.'),
  chat: z
    .string()
    .regex(/^$|^[a-z0-9-]+(@[^:]+)?:[^#]+(#.+)?$/, 'Write channel:chat, e.g. telegram:123456789')
    .default('')
    .describe('Chat for reports, channel:chat. Empty: where an owner wrote last.'),
  activeHours: hours().describe('Hours of the checks, in sessions.timeZone. Empty: always.'),
});

export const noticesSchema = z.strictObject({
  channel: z
    .string()
    .regex(
      /^$|^(telegram|whatsapp|lark|email|web)(@[a-z0-9-]{1,32})?$/,
      'Write telegram, whatsapp, lark, email or web, or email@work for an additional mailbox',
    )
    .default('')
    .describe(
      'Account on which the owner gets notices; web: the page. Empty: the account that the notice ' +
        'concerns, else the channel they used last.',
    ),
});

export const quietHoursSchema = z
  .string()
  .regex(
    new RegExp(`^$|${QUIET_PATTERN.source}`),
    'Write hours and minutes, e.g. 22:00-07:00, or with the days on which they begin: Sun-Thu 22:00-07:00, Fri-Sat 23:30-09:00',
  )
  .default('')
  .describe(
    'Hours in which the agent does not message people first, in the time zone of each person, e.g. ' +
      '22:00-07:00, or by the days on which they begin: Sun-Thu 22:00-07:00, Fri-Sat 23:30-09:00. Messages ' +
      'come together at the end. People set their own with /quiet. Empty: none.',
  );

export const updateSchema = section({
  check: z
    .enum(['never', 'daily'])
    .default('never')
    .describe(
      'Ask the npm registry for the newest version: daily, or never by itself. Only the name of the package is sent.',
    ),
});
