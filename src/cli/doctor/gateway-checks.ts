// What the doctor asks of the running gateway and of the store: alive, channels moving, nothing set
// aside.

import { askGateway, findRunningGateway } from '../../app/running-gateway.ts';
import { hasState, type OpenedState, openState } from '../../app/state.ts';
import { findHomeHolder } from '../../kernel/bus/store/home-lock.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { readinessSchema, statusLine } from '../channel-lines.ts';
import { holderText } from '../explain-error.ts';
import { spanText } from '../flag-values.ts';
import type { Terminal } from '../terminal.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** A channel that completed nothing for so long has stalled. */
const STALE_MS = 10 * 60_000;
const OLD_PENDING_MS = 15 * 60_000;

export async function checkGateway(
  { home, clock }: Terminal,
  token: string,
): Promise<readonly Finding[]> {
  const running = await findRunningGateway(home);
  const heldBy = running === undefined ? await findHomeHolder(home.lock) : undefined;
  if (heldBy !== undefined) {
    const text = `cannot be seen from here: the home is held by ${holderText(heldBy)}`;
    return [warn('gateway', text, 'Look again in its own container, e.g. docker compose exec.')];
  }
  if (running === undefined) {
    return [warn('gateway', 'no gateway runs in this home', 'Start it: nanobot gateway')];
  }
  const since = spanText(clock.now() - running.startedAt);
  const alive = ok('gateway', `runs as process ${running.pid} since ${since}`);
  if (running.address === undefined) return [alive];
  const readiness = readinessSchema.safeParse(await askGateway(running, '/readyz', token));
  if (!readiness.success) {
    const remedy = `Read ${home.logs}, the newest file; if it hangs, stop it and start it again.`;
    return [alive, fail('gateway', `${running.address} does not answer`, remedy)];
  }
  const channels = readiness.data.channels.filter(({ status }) => status.kind !== 'off');
  return [
    alive,
    ...channels.map(({ name, status }) => {
      const { remedy, ...facts } = status;
      const text = statusLine(facts, clock.now());
      const silentMs = status.activeAt === undefined ? 0 : clock.now() - status.activeAt;
      if (status.kind === 'running' && silentMs < STALE_MS) return ok(name, text);
      if (status.kind === 'starting') return ok(name, text);
      return fail(
        name,
        text,
        remedy ?? `It is tried again. ${home.logs} has the details, newest file.`,
      );
    }),
  ];
}

export async function checkState(
  { home, clock }: Terminal,
  stack: AsyncDisposableStack,
): Promise<{ readonly findings: readonly Finding[]; readonly state: OpenedState | undefined }> {
  if (!hasState(home)) return { findings: [ok('store', 'none yet')], state: undefined };
  try {
    const state = stack.use(
      await openState(home, clock, { checkUpToBytes: Number.POSITIVE_INFINITY }),
    );
    return { findings: await storeFindings(state, clock.now()), state };
  } catch (error) {
    if (!(error instanceof NanobotError)) throw error;
    const findings = [fail('store', error.message, storeRemedy(error.code))];
    return { findings, state: undefined };
  }
}

/** Moving a file away that is whole would lose the messages that wait in it. */
function storeRemedy(code: string): string {
  if (code === 'store_damaged') {
    return 'Stop the gateway, move state.db away and keep it; a new one is made.';
  }
  return 'Nothing in it is lost: leave the file where it is.';
}

async function storeFindings({ store }: OpenedState, now: number): Promise<readonly Finding[]> {
  const stats = await store.stats();
  const findings = [
    ok('store', `opens and is whole; ${stats.pending} waiting, ${stats.outboundQueued} to send`),
  ];
  const aside = stats.dead + stats.unknown;
  if (aside > 0) {
    const remedy = 'See "nanobot dead list", then retry or drop them.';
    findings.push(warn('messages', `${stats.dead} set aside, ${stats.unknown} in doubt`, remedy));
  }
  const waitedMs = now - (stats.oldestPendingAt ?? now);
  if (waitedMs > OLD_PENDING_MS) {
    const text = `a message has been waiting for ${spanText(waitedMs)}`;
    findings.push(
      warn('messages', text, 'Is the gateway running? "nanobot trace last" says more.'),
    );
  }
  return findings;
}
