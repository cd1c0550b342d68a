// Tool: the time now, here and in other zones.

import { z } from 'zod';
import { ToolError } from '../kernel/message/errors.ts';
import { describeTime } from '../lib/time/zone-time.ts';
import { readDescription } from './description.ts';
import type { Tool } from './tool.ts';

const MAX_ZONES = 20;

const timeInput = z.object({
  zones: z
    .array(z.string().max(64))
    .max(MAX_ZONES)
    .optional()
    .describe('IANA zones, e.g. ["Asia/Tokyo"]; left out: the person’s.'),
});
type TimeInput = z.infer<typeof timeInput>;

/** `timeZone`: zone taken when none is asked for; empty = the machine's. */
export function createTime(timeZone: () => string): Tool<TimeInput> {
  return {
    name: 'time',
    aliases: ['get_time', 'current_time', 'get_current_time', 'now', 'date', 'get_date'],
    parameterAliases: { zones: ['zone', 'timezone', 'time_zone', 'timezones', 'tz'] },
    ...readDescription('time'),
    access: 'read',
    input: timeInput,
    describe: ({ zones }) => zones?.join(', ') ?? '',
    async run({ zones }, { clock, person }) {
      const own = person.timeZone ?? timeZone();
      const wanted = zones === undefined || zones.length === 0 ? [own] : zones;
      const now = clock.now();
      return wanted.map((zone) => describeOne(now, zone)).join('\n');
    },
  };
}

function describeOne(now: number, zone: string): string {
  const text = describeTime(now, zone);
  if (text !== undefined) return text;
  throw new ToolError('invalid_arguments', `"${zone}" is no IANA time zone, e.g. "Europe/Berlin"`);
}
