// The gateway itself over HTTP: channels over time, queues, dead letters as by `nanobot dead`, the checks
// of `nanobot doctor`, the audit as by `nanobot audit`, and the log.

import { z } from 'zod';
import { statusLine } from '../../channels/channel-lines.ts';
import type { ConfiguredChannels } from '../../channels/configured-channels.ts';
import { noteCommand } from '../../channels/local-channel.ts';
import { programVersion } from '../../kernel/config/files/home.ts';
import type { Kernel } from '../../kernel/feature.ts';
import {
  endpoint,
  Refusal,
  type RouteHandlers,
  streamed,
  watched,
} from '../../kernel/http-routes.ts';
import { messageId } from '../../kernel/message/ids.ts';
import { readLine } from '../../kernel/observe/audit.ts';
import { newestEntries, verifyChains } from '../../kernel/observe/build-telemetry.ts';
import { inTime } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHistory } from './channel-history.ts';
import { createDoctorRuns } from './doctor-runs.ts';
import { logParts } from './log-lines.ts';
import {
  type AuditVerdict,
  auditList,
  auditVerdict,
  logPart,
  type OperationsState,
  operationsState,
} from './rules/views.ts';

const MAX_DEAD = 100;
const MAX_IDS = 1000;
const MAX_ID_CHARS = 1000;
const MAX_CHECK_CHARS = 100;
const MAX_ENTRIES = 1000;
/** Below the time after which the page gives a request up. */
const VERIFY_MS = 10_000;

const letters = z
  .union([
    z.strictObject({ ids: z.array(z.string().min(1).max(MAX_ID_CHARS)).min(1).max(MAX_IDS) }),
    z.strictObject({ all: z.literal(true) }),
  ])
  .describe('Ids of messages that were set aside, or all of them.');
const counted = z.object({ count: z.number() });
const started = z.object({ result: z.literal('started') });
const fixWish = z.strictObject({
  check: z
    .string()
    .max(MAX_CHECK_CHARS)
    .regex(/^\w[\w@.-]*$/)
    .describe('Of a finding that can be fixed.'),
});

type OperationsDeps = {
  readonly kernel: Kernel;
  readonly configured: Pick<ConfiguredChannels, 'channels'>;
  readonly history: ChannelHistory;
  readonly since: number;
  readonly updates: { view(): Promise<OperationsState['update']> };
};

export function operationsRoutes(deps: OperationsDeps) {
  const { kernel } = deps;
  const { bus, home, clock, live, measuring } = kernel;
  const doctor = createDoctorRuns(kernel);
  const audits = createAuditReader(kernel);
  const note = (...words: readonly string[]) => noteCommand(measuring.audit, ...words);

  async function chosen(wish: z.output<typeof letters>) {
    return 'ids' in wish ? wish.ids.map(messageId) : (await bus.dead()).map(({ id }) => id);
  }

  async function change(what: 'retry' | 'drop', wish: z.output<typeof letters>) {
    const ids = await chosen(wish);
    note('dead', what, 'ids' in wish && ids.length === 1 ? (ids[0] ?? '') : `${ids.length}`);
    return { count: what === 'retry' ? await bus.retry(ids) : await bus.drop(ids) };
  }

  function examine(only?: string) {
    note('doctor', ...(only === undefined ? [] : ['--fix', '--only', only]));
    if (doctor.start(only)) return { result: 'started' } as const;
    throw new Refusal(409, 'doctor_busy', t`The checks are running. Wait until they have ended.`);
  }

  return {
    'GET /api/v1/operations/events': watched(
      {
        summary: t`Version, channels over time, queues, dead letters and findings of the doctor, now and after each change`,
        answer: operationsState,
      },
      clock,
      async () => ({ ...(await stateOf(deps)), doctor: doctor.state }),
    ),
    'POST /api/v1/dead/retry': endpoint(
      { summary: t`Queue messages again that were set aside`, body: letters, answer: counted },
      (_params, wish) => change('retry', wish),
    ),
    'POST /api/v1/dead/drop': endpoint(
      { summary: t`Delete messages that were set aside`, body: letters, answer: counted },
      (_params, wish) => change('drop', wish),
    ),
    'POST /api/v1/doctor': endpoint(
      {
        summary: t`Run the checks of nanobot doctor; the events show what they find`,
        ...{ answer: started, status: 202 },
      },
      () => examine(),
    ),
    'POST /api/v1/doctor/fix': endpoint(
      {
        summary: t`Fix what a check found, without losing anything, and check again`,
        ...{ body: fixWish, answer: started, status: 202 },
      },
      (_params, { check }) => examine(check),
    ),
    'GET /api/v1/audit': endpoint(
      { summary: t`The newest ${MAX_ENTRIES} entries of the audit log`, answer: auditList },
      async () => ({ isOn: live.config.telemetry.audit, entries: await audits.newest() }),
    ),
    'POST /api/v1/audit/verify': endpoint(
      {
        summary: t`Check that no entry of the audit log was changed, removed or inserted`,
        answer: auditVerdict,
      },
      audits.verify,
    ),
    'GET /api/v1/logs/events': streamed(
      {
        summary: t`The newest 100,000 lines of the log, the newest first, then those that are added`,
        answer: logPart,
      },
      (_params, _body, signal) => logParts(home.logs, clock, signal),
    ),
  } satisfies RouteHandlers;
}

async function stateOf({
  kernel,
  configured,
  history,
  since,
  updates,
}: OperationsDeps): Promise<Omit<OperationsState, 'doctor'>> {
  const { bus, clock } = kernel;
  const { pending, running, outboundQueued, dead, unknown, oldestPendingAt } = await bus.stats();
  const letters = dead + unknown === 0 ? [] : await bus.dead();
  return {
    ...{ version: programVersion(), since },
    update: await updates.view(),
    queue: {
      ...{ waiting: pending, running, toSend: outboundQueued },
      ...(oldestPendingAt === undefined ? {} : { oldestAt: oldestPendingAt }),
      depths: [...history.depths()],
    },
    channels: configured.channels().map(({ name, label, status }) => ({
      ...{ name, label, kind: status.kind },
      // Without the time since it was active, which changes all the time.
      text: statusLine({ ...status, activeAt: undefined }, clock.now()),
      spans: [...history.spans(name)],
    })),
    deadCount: letters.length,
    dead: letters.slice(0, MAX_DEAD).map((letter) => ({ ...letter })),
  };
}

function createAuditReader({ home, store, clock }: Kernel) {
  let verifying: Promise<AuditVerdict> | undefined;

  async function verdict(): Promise<AuditVerdict> {
    const found = await verifyChains(home, store);
    return found.kind === 'intact' ? { ...found, unfinished: found.unfinished.length } : found;
  }

  return {
    async newest() {
      const lines = (await newestEntries(home, MAX_ENTRIES)).toReversed();
      return lines.flatMap((text) => {
        const { seq, at, kind, fields } = readLine(text) ?? {};
        if (seq === undefined || kind === undefined || at === undefined) return [];
        return [{ seq, at: Date.parse(at), kind, fields: { ...fields } }];
      });
    },
    /** One at a time; asked again, it answers for the one that runs. */
    async verify(): Promise<AuditVerdict> {
      verifying ??= verdict().finally(() => {
        verifying = undefined;
      });
      const found = await inTime(clock, VERIFY_MS, verifying);
      return found === 'late' ? { kind: 'running' } : found;
    },
  };
}
