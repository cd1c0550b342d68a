// The heartbeat over HTTP: seen, its file edited, and a look at once.

import { z } from 'zod';
import { noteCommand } from '../../channels/local-channel.ts';
import {
  endpoint,
  Refusal,
  type RouteHandlers,
  versionOf,
  watched,
} from '../../kernel/http-routes.ts';
import type { AuditLog } from '../../kernel/observe/telemetry.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { zoneInForce } from '../../lib/time/zone-names.ts';
import type { Heartbeat } from './heartbeat.ts';
import { type ShownHeartbeat, shownHeartbeat } from './rules/heartbeat-view.ts';
import { asksForSomething } from './rules/job.ts';

type HeartbeatRoutesDeps = {
  readonly heartbeat: Pick<Heartbeat, 'state' | 'lookNow'>;
  settings(): Pick<ShownHeartbeat, 'isOn' | 'everyMins' | 'activeHours' | 'quietHours'>;
  readFile(): Promise<string | undefined>;
  /** Reads, changes and writes the file without another change in between. */
  updateFile(change: (text: string) => string): Promise<void>;
  timeZone(): string;
  readonly maxBytes: number;
  readonly clock: Pick<Clock, 'now' | 'sleep'>;
  readonly audit: AuditLog;
};

export function heartbeatRoutes(deps: HeartbeatRoutesDeps) {
  const { heartbeat, clock, audit } = deps;
  async function view(): Promise<ShownHeartbeat> {
    const text = (await deps.readFile()) ?? '';
    return {
      ...deps.settings(),
      ...{ text, version: versionOf(text), hasTasks: asksForSomething(text) },
      ...(await heartbeat.state()),
      timeZone: zoneInForce(deps.timeZone()),
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
