// Operations, audit: every action with effects, newest first, and whether the record is unchanged.

import { useSignal } from '@preact/signals';
import { t } from '/texts.js';
import type { AuditList, AuditVerdict } from '../../../features/health/rules/views.ts';
import { Button, Problem } from '../controls.tsx';
import { LineWindow } from './line-window.tsx';
import { useAct, useRead, type ViewProps } from './parts.tsx';

const AUDIT = '/api/v1/audit';
const MAX_ROW_CHARS = 400;

export function Audit({ parts }: ViewProps) {
  const { found, problem: unread, read } = useRead<AuditList>(parts, AUDIT);
  const { problem, act } = useAct();
  const verdict = useSignal<AuditVerdict | undefined>(undefined);

  async function verify() {
    verdict.value = { kind: 'running' };
    const isDone = await act(async () => {
      while (verdict.value?.kind === 'running') {
        verdict.value = (await parts.api.postJson(`${AUDIT}/verify`, {})) as AuditVerdict;
      }
    });
    if (!isDone) verdict.value = undefined;
    await read();
  }

  const { isOn = true, entries = [] } = found.value ?? {};
  const why = problem.value || unread.value;
  return (
    <section class="log" aria-label={t`Audit`}>
      <p class="soft">
        {t`Tool calls with effects, approvals, letters, changes of people and of the configuration: a chain in which each entry carries the hash of the one before.`}
      </p>
      {!isOn && <p class="view-problem">{t`Nothing is recorded: telemetry.audit is false.`}</p>}
      <Problem class="view-problem" text={why} />
      {verdict.value !== undefined && <Verdict verdict={verdict.value} />}
      <div class="actions">
        <Button
          text={t`Verify all entries`}
          look="primary"
          disabled={verdict.value?.kind === 'running'}
          onClick={verify}
        />
      </div>
      <LineWindow
        label={t`Entries of the audit, newest first`}
        count={entries.length}
        before={0}
        followsEnd={false}
        row={(index) => <Entry entry={entries[index]} />}
      />
    </section>
  );
}

function Verdict({ verdict }: { readonly verdict: AuditVerdict }) {
  if (verdict.kind === 'running') {
    return (
      <p class="said-so" role="status">
        {t`The entries are being read.`}
      </p>
    );
  }
  if (verdict.kind === 'broken') {
    return (
      <p class="view-problem" role="alert">
        <bdi>{t`${verdict.file}, line ${verdict.line}: ${verdict.problem}`}</bdi>
      </p>
    );
  }
  const { entries, unfinished } = verdict;
  return (
    <p class="said-so" role="status">
      {t`${entries} entries, all unchanged.`}{' '}
      {unfinished > 0 && t`Calls without a recorded outcome: ${unfinished}.`}
    </p>
  );
}

function Entry({ entry }: { readonly entry: AuditList['entries'][number] | undefined }) {
  if (entry === undefined) return null;
  const fields = Object.entries(entry.fields)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
  return (
    <div class="log-row">
      <span class="log-head">
        <span class="soft">{new Date(entry.at).toLocaleString()}</span> {entry.kind}
      </span>
      <span class="log-head soft">
        <bdi>{fields.slice(0, MAX_ROW_CHARS)}</bdi>
      </span>
    </div>
  );
}
