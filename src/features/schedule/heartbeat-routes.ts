// The heartbeat over HTTP: seen, its file edited, and a look at once; and a job read from a sentence by
// one call of the model, which saves nothing.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { SpendingRefusedError } from '../../agent/agent.ts';
import type { SideModel } from '../../agent/side-model.ts';
import { LOCAL_OWNER } from '../../channels/local-channel.ts';
import { endpoint, Refusal, type RouteHandlers, watched } from '../../kernel/http-routes.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import type { AuditLog } from '../../kernel/observe/telemetry.ts';
import { NOTICES } from '../../kernel/owners.ts';
import { lenientJson, objectsIn, withoutThoughts } from '../../lib/json/loose-json.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import {
  type DraftJob,
  draftJob,
  draftPrompt,
  type ShownHeartbeat,
  shownHeartbeat,
} from './rules/heartbeat-view.ts';
import { asksForSomething, parseWhen } from './rules/job.ts';
import { JobError, slotText } from './rules/schedule.ts';
import type { Heartbeat } from './scheduler.ts';

const MAX_SENTENCE_CHARS = 2000;
const MAX_DRAFT_TOKENS = 1000;
/** A person waits for it. */
const DRAFT_TIMEOUT_MS = 60_000;

type HeartbeatRoutesDeps = {
  readonly heartbeat: Pick<Heartbeat, 'state' | 'lookNow'>;
  settings(): Pick<ShownHeartbeat, 'isOn' | 'everyMins' | 'activeHours' | 'quietHours'>;
  readFile(): Promise<string | undefined>;
  /** Reads, changes and writes the file without another change in between. */
  updateFile(change: (text: string) => string): Promise<void>;
  timeZone(): string;
  readonly maxBytes: number;
  readonly side: SideModel;
  readonly clock: Pick<Clock, 'now' | 'sleep'>;
  readonly audit: AuditLog;
};

export function heartbeatRoutes(deps: HeartbeatRoutesDeps) {
  const { heartbeat, clock, audit } = deps;
  const note = (action: string) =>
    audit.note({
      kind: 'command',
      fields: { command: ['heartbeat', action].join(' '), by: LOCAL_OWNER.id },
    });

  async function view(): Promise<ShownHeartbeat> {
    const text = (await deps.readFile()) ?? '';
    return {
      ...deps.settings(),
      ...{ text, version: versionOf(text), hasTasks: asksForSomething(text) },
      ...(await heartbeat.state()),
      timeZone: zoneNow(deps),
    };
  }

  return {
    'GET /api/v1/heartbeat': endpoint(
      { summary: t`The heartbeat and its file; the quiet hours`, answer: shownHeartbeat },
      view,
    ),
    'GET /api/v1/heartbeat/events': watched(
      {
        summary: t`The heartbeat and the quiet hours, now and after each change`,
        answer: shownHeartbeat,
      },
      clock,
      view,
    ),
    'POST /api/v1/heartbeat': endpoint(
      {
        summary: t`Replace the text of HEARTBEAT.md`,
        body: z.strictObject({
          text: z.string().max(deps.maxBytes),
          version: z.string().max(100),
        }),
        answer: shownHeartbeat,
      },
      async (_params, { text, version }) => {
        await deps.updateFile((before) => {
          if (versionOf(before) === version) return text;
          const message = t`HEARTBEAT.md was changed meanwhile. Your text is not saved.`;
          throw new Refusal(409, 'changed_meanwhile', message);
        });
        note('edit');
        return view();
      },
    ),
    'POST /api/v1/heartbeat/run': endpoint(
      {
        summary: t`Look at HEARTBEAT.md now, whatever the hours`,
        ...{ body: z.strictObject({}), answer: shownHeartbeat },
      },
      async () => {
        const found = await heartbeat.lookNow();
        if (found === 'running') {
          throw new Refusal(409, 'running', t`The previous heartbeat is still running.`);
        }
        if (found === 'nothing') {
          throw new Refusal(409, 'no_task', t`There is no task in HEARTBEAT.md. Write one first.`);
        }
        note('run');
        return view();
      },
    ),
    'POST /api/v1/schedules/draft': endpoint(
      {
        summary: t`A job as one call of the model reads it from a sentence; nothing is saved`,
        body: z.strictObject({ sentence: z.string().trim().min(1).max(MAX_SENTENCE_CHARS) }),
        answer: draftJob,
      },
      (_params, { sentence }) => drafted(sentence, deps),
    ),
  } satisfies RouteHandlers;
}

/** @throws Refusal */
async function drafted(
  sentence: string,
  { side, clock, ...deps }: Pick<HeartbeatRoutesDeps, 'side' | 'clock' | 'timeZone'>,
): Promise<DraftJob> {
  const zone = zoneNow(deps);
  const call = {
    role: 'schedule',
    payer: { chat: NOTICES, sender: LOCAL_OWNER, isUnseen: true },
    system: draftPrompt(slotText(clock.now(), zone), zone),
    text: sentence,
    maxTokens: MAX_DRAFT_TOKENS,
  } as const;
  const answer = await side
    .complete(call, AbortSignal.timeout(DRAFT_TIMEOUT_MS))
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

/** Where none is configured, that of the machine. */
const zoneNow = ({ timeZone }: Pick<HeartbeatRoutesDeps, 'timeZone'>) =>
  timeZone() || new Intl.DateTimeFormat().resolvedOptions().timeZone;

const versionOf = (text: string) =>
  createHash('sha256').update(text).digest('base64url').slice(0, 22);
