// The part of the configuration about what the machine does of its own accord: scheduled jobs, the
// heartbeat, notices to the owner, and quiet hours.

import { z } from 'zod';
import { count, flag } from '../../kernel/config/settings-fields.ts';
import { HOURS_PATTERN } from '../letters/rules/letter.ts';

const OPTIONAL_HOURS = new RegExp(`^$|${HOURS_PATTERN.source}`);
const hours = () =>
  z.string().regex(OPTIONAL_HOURS, 'Write hours and minutes, like 22:00-07:00').default('');

export const cronSchema = z.strictObject({
  enabled: flag(true).describe('Scheduled jobs run; false: they only wait.'),
  maxFailures: count(1, 1000, 10).describe(
    'Failed runs in a row after which a job is switched off.',
  ),
});

export const heartbeatSchema = z.strictObject({
  enabled: flag(true).describe(
    'HEARTBEAT.md of the workspace is looked at; no model is asked while it asks for nothing.',
  ),
  everyMins: count(1, 10_080, 30).describe('Minutes between two looks.'),
  chat: z
    .string()
    .regex(/^$|^[a-z0-9-]+(@[^:]+)?:[^#]+(#.+)?$/, 'Write channel:chat, like telegram:123456789')
    .default('')
    .describe('Where it reports, channel:chat; empty: where an owner wrote last.'),
  activeHours: hours().describe('When it looks, in sessions.timeZone; empty: always.'),
});

export const noticesSchema = z.strictObject({
  channel: z
    .string()
    .regex(
      /^$|^(telegram|whatsapp|lark|email|web)(@[a-z0-9-]{1,32})?$/,
      'Write telegram, whatsapp, lark, email or web, or email@work for a further mailbox',
    )
    .default('')
    .describe(
      'The account on which the owner gets notices; web: the page. Empty: the account that a notice ' +
        'is about, else the channel they used last.',
    ),
});

export const quietHoursSchema = hours().describe(
  'When nobody gets what the machine begins by itself, in the time zone of each person; it comes ' +
    'together at the end. People choose their own with /quiet. Empty: none.',
);
