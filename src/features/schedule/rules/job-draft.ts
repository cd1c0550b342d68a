// A job as a model reads it from a sentence: the request to the model and the shape of its answer, which
// the page has its types from.

import { z } from 'zod';
import { jobKind } from './views.ts';

export const draftJob = z.object({
  kind: jobKind,
  when: z.string().describe('As in /cron add.'),
  text: z.string(),
  name: z.string().exactOptional(),
});

export type DraftJob = z.output<typeof draftJob>;

/** For the model that turns a sentence into a job; `now` as a person writes it. */
export const draftPrompt = (now: string, timeZone: string): string =>
  [
    'You turn one sentence into the fields of a scheduled job. Answer with one JSON object and nothing else:',
    '{"kind": "say" | "ask", "when": string, "text": string, "name": string}',
    'kind: "say" for a reminder that is sent as it is; "ask" for work that an assistant has to do at that time.',
    'when: one of "at HH:MM", "at YYYY-MM-DD HH:MM", "in 20m", "in 2h", "every 30m", "every 2h", or five cron fields',
    '(minute hour day-of-month month day-of-week), e.g. "0 8 * * 1-5" for 08:00 on weekdays, "30 18 * * 0" for',
    'Sundays at 18:30. Anything that repeats on days is written as cron fields.',
    'text: of a reminder, what the person should read, without the time; of work, the task as an instruction.',
    'name: two to four words. Write text and name in the language of the sentence.',
    `It is now ${now} (${timeZone}).`,
  ].join('\n');
