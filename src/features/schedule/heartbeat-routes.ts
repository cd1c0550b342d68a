// The heartbeat over HTTP: seen, its file edited, and a look at once.

import { z } from 'zod';
import { noteCommand } from '../../channels/local-channel.ts';
import type { Kernel } from '../../kernel/feature.ts';
import {
  endpoint,
  Refusal,
  type RouteHandlers,
  versionOf,
  watched,
} from '../../kernel/http-routes.ts';
import { t } from '../../lib/texts.ts';
import { zoneInForce } from '../../lib/time/zone-names.ts';
import type { Heartbeat } from './heartbeat.ts';
import { type HeartbeatFile, MAX_HEARTBEAT_BYTES } from './index.ts';
import { type ShownHeartbeat, shownHeartbeat } from './rules/heartbeat-view.ts';
import { asksForSomething } from './rules/job.ts';

export function heartbeatRoutes(
  { live, clock, measuring: { audit } }: Kernel,
  heartbeat: Heartbeat,
  file: HeartbeatFile,
) {
  async function view(): Promise<ShownHeartbeat> {
    const text = (await file.read()) ?? '';
    const { heartbeat: is, quietHours, sessions } = live.config;
    const { everyMins, activeHours } = is;
    return {
      ...{ isOn: is.enabled, everyMins, activeHours, quietHours },
      ...{ text, version: versionOf(text), hasTasks: asksForSomething(text) },
      ...(await heartbeat.state()),
      timeZone: zoneInForce(sessions.timeZone),
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
          text: z.string().max(MAX_HEARTBEAT_BYTES),
          version: z.string().max(100),
        }),
        answer: shownHeartbeat,
      },
      async (_params, { text, version }) => {
        await file.update((before) => {
          if (versionOf(before) === version) return text;
          const message = t`HEARTBEAT.md was changed meanwhile. Your text is not saved.`;
          throw new Refusal(409, 'changed_meanwhile', message);
        });
        noteCommand(audit, 'heartbeat', 'edit');
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
        noteCommand(audit, 'heartbeat', 'run');
        return view();
      },
    ),
  } satisfies RouteHandlers;
}
