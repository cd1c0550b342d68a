// What the doctor asks of the files in which the gateway keeps account of itself: whether they can be
// written, and whether the audit file is as it was written.

import { access, constants, stat } from 'node:fs/promises';
import { AUDIT_SCOPE } from '../../app/build-telemetry.ts';
import type { Home } from '../../app/home.ts';
import type { OpenedState } from '../../app/state.ts';
import type { Config } from '../../core/config.ts';
import { verifyAudit } from '../../telemetry/audit-verify.ts';
import { type Finding, fail, ok } from './finding.ts';

export async function checkAccounts(
  home: Home,
  { telemetry }: Config,
  state: OpenedState | undefined,
): Promise<readonly Finding[]> {
  const written = [
    ...(telemetry.metricsFile ? await checkWritable('metrics', home.metrics) : []),
    ...(telemetry.audit ? await checkWritable('audit', home.audit) : []),
  ];
  if (state === undefined || written.some(({ check }) => check === 'audit')) return written;
  return [...written, await checkAudit(home, state)];
}

async function checkAudit(home: Home, { store }: OpenedState): Promise<Finding> {
  const verdict = await verifyAudit(home.audit, store.scope(AUDIT_SCOPE));
  if (verdict.kind === 'intact') return ok('audit', `${verdict.entries} entries, none changed`);
  const { file, line, problem } = verdict;
  const remedy = 'Find out who can write there; keep a copy, then move audit*.jsonl away.';
  return fail('audit', `${file}, line ${line}: ${problem}`, remedy);
}

/** What is not there yet is made when it is needed. */
async function checkWritable(check: string, path: string): Promise<readonly Finding[]> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return [];
  const isWritable = await access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
  if (found.isFile() && isWritable) return [];
  const remedy = `Move ${path} away, or make it a file of the user who runs the gateway.`;
  return [fail(check, `${path} cannot be written`, remedy)];
}
