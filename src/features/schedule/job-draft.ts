// A job read from a sentence by one call of the model. Nothing is saved: the person checks it first.

import { z } from 'zod';
import { SpendingRefusedError } from '../../agent/agent.ts';
import { SIDE_MODEL } from '../../agent/side-model.ts';
import { LOCAL_OWNER } from '../../channels/local-channel.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, Refusal, type RouteHandlers } from '../../kernel/http-routes.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { NOTICES } from '../../kernel/owners.ts';
import { givenText } from '../../lib/json/json.ts';
import { lenientJson, objectsIn, withoutThoughts } from '../../lib/json/loose-json.ts';
import { t } from '../../lib/texts.ts';
import { zoneInForce } from '../../lib/time/zone-names.ts';
import { parseWhen } from './rules/job.ts';
import { type DraftJob, draftJob, draftPrompt } from './rules/job-draft.ts';
import { JobError, slotText } from './rules/schedule.ts';

const MAX_SENTENCE_CHARS = 2000;
const MAX_TOKENS = 1000;
/** A person waits for it. */
const TIMEOUT_MS = 60_000;

export const jobDraftRoutes = (kernel: Kernel) =>
  ({
    'POST /api/v1/schedules/draft': endpoint(
      {
        summary: t`A job as one call of the model reads it from a sentence; nothing is saved`,
        body: z.strictObject({ sentence: givenText(MAX_SENTENCE_CHARS) }),
        answer: draftJob,
      },
      (_params, { sentence }) => drafted(sentence, kernel),
    ),
  }) satisfies RouteHandlers;

/** @throws Refusal */
async function drafted(sentence: string, { live, clock, use }: Kernel): Promise<DraftJob> {
  const zone = zoneInForce(live.config.sessions.timeZone);
  const call = {
    role: 'schedule',
    payer: { chat: NOTICES, sender: LOCAL_OWNER, isUnseen: true },
    system: draftPrompt(slotText(clock.now(), zone), zone),
    text: sentence,
    maxTokens: MAX_TOKENS,
  } as const;
  const answer = await use(SIDE_MODEL)
    .complete(call, AbortSignal.timeout(TIMEOUT_MS))
    .catch((error: unknown) => {
      if (error instanceof SpendingRefusedError) throw new Refusal(409, 'budget', error.text);
      if (!(error instanceof ProviderError)) throw error;
      throw new Refusal(502, 'model_failed', error.userText ?? error.message);
    });
  const objects = objectsIn(withoutThoughts(answer)).map(lenientJson);
  const read = objects.map((object) => draftJob.safeParse(object));
  const draft = read.findLast(({ success }) => success)?.data;
  if (draft === undefined || !isTime(draft.when)) {
    const message = t`The model did not understand when or what. Say it in other words, or fill in the fields.`;
    throw new Refusal(422, 'not_understood', message);
  }
  return draft;
}

function isTime(when: string): boolean {
  try {
    parseWhen(when);
    return true;
  } catch (error) {
    if (error instanceof JobError) return false;
    throw error;
  }
}
