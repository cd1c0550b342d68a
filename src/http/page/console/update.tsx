// The version of the gateway: a newer one, installing it, how far that is, and how it ended. The page stays
// while the gateway is stopped and started by it.

import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { OperationsState } from '../../../features/health/rules/views.ts';
import { Button, Problem, set } from '../controls.tsx';
import { Moment, type PageParts, useAct } from './parts.tsx';
import { Words } from './setup-parts.tsx';

type Update = OperationsState['update'];
type Props = {
  readonly parts: PageParts;
  readonly version: string;
  readonly update: Update;
};

const CHECK_TIMEOUT_MS = 20_000;
const DAY_MS = 86_400_000;
const OVER = ['done', 'rolled-back', 'kept'];

export function UpdatePart({ parts, version, update }: Props) {
  const { isBusy, said, problem, act } = useAct();
  /** This page belongs to the version that it was loaded from. */
  const loaded = useRef(version);
  const { newer, remedy, isRunning, run } = update;

  const post = (path: string) => parts.api.postJson(path, {}, { timeoutMs: CHECK_TIMEOUT_MS });
  const check = () =>
    act(async () => {
      const { isNewer } = (await post('/api/v1/update/check')) as { readonly isNewer: boolean };
      if (!isNewer) said.value = t`This is the newest version.`;
    });

  const isRecent = run?.outcome !== undefined && Date.now() - run.at < DAY_MS;
  return (
    <div class="update">
      {loaded.current !== version && (
        <p class="said-so">
          {t`The gateway runs another version now than this page.`}{' '}
          <Button text={t`Load the page again`} onClick={() => location.reload()} />
        </p>
      )}
      {isRunning ? (
        <Progress update={update} />
      ) : (
        <>
          {isRecent && (
            <p class={run.step === 'done' ? 'said-so' : 'view-problem'}>
              {run.outcome} <Moment at={run.at} />
            </p>
          )}
          {newer !== undefined && (
            <Offer
              newer={newer}
              remedy={remedy}
              isBusy={isBusy.value}
              install={() => act(() => post('/api/v1/update'))}
            />
          )}
          {run?.outcome === undefined && <Said said={update.said} isOpen />}
        </>
      )}
      <Problem text={problem.value} />
      <p role="status" hidden={said.value === ''}>
        {said.value}
      </p>
      {!isRunning && newer === undefined && (
        <div class="actions">
          <Button text={t`Look for a newer version`} disabled={isBusy.value} onClick={check} />
        </div>
      )}
    </div>
  );
}

function Offer(props: {
  readonly newer: NonNullable<Update['newer']>;
  readonly remedy: string | undefined;
  readonly isBusy: boolean;
  readonly install: () => Promise<unknown>;
}) {
  const { newer, remedy, isBusy, install } = props;
  const isAsked = useSignal(false);
  const sure = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    if (isAsked.value) sure.current?.focus();
  }, [isAsked.value]);
  return (
    <div class="said-so">
      <p>
        {t`Version ${newer.version} is available.`}{' '}
        {remedy !== undefined && <Words text={remedy} />}{' '}
        {newer.homepage !== undefined && (
          <a href={newer.homepage} rel="noreferrer" target="_blank">{t`What changed`}</a>
        )}
      </p>
      {isAsked.value && (
        <p class="soft">
          {t`A back-up is made, and the new version is tried on a copy. Then the gateway starts again; messages wait meanwhile. If it does not stay healthy, this version comes back.`}
        </p>
      )}
      {remedy === undefined && (
        <div class="actions">
          {isAsked.value ? (
            <>
              <Button
                text={t`Install ${newer.version} now`}
                look="primary"
                ref={sure}
                disabled={isBusy}
                onClick={install}
              />
              <Button text={t`Later`} onClick={set(isAsked, false)} />
            </>
          ) : (
            <Button text={t`Update…`} look="primary" onClick={set(isAsked, true)} />
          )}
        </div>
      )}
    </div>
  );
}

function Progress({ update: { run, said } }: { readonly update: Update }) {
  const isBack = run?.step === 'rolling-back' || run?.step === 'restoring';
  const steps = [
    ['preparing', t`A back-up, the new version beside this one, a trial on a copy`],
    ['stopping', t`The gateway stops`],
    ['switched', t`The new version starts`],
    ['watching', t`It is watched for two minutes`],
  ] as const;
  // Before the record of this update is written, the one of the last may stand there.
  const step = run === undefined || OVER.includes(run.step) ? 'preparing' : run.step;
  return (
    <div class="said-so" role="status">
      <p>{isBack ? t`The version of before comes back.` : t`The update is under way.`}</p>
      <ol class="update-steps">
        {steps.map(([name, text]) => (
          <li key={name} aria-current={name === step ? 'step' : undefined}>
            {text}
          </li>
        ))}
      </ol>
      <Said said={said} isOpen={false} />
    </div>
  );
}

function Said({ said, isOpen }: { readonly said: readonly string[]; readonly isOpen: boolean }) {
  if (said.length === 0) return null;
  return (
    <details open={isOpen}>
      <summary>{t`What it said`}</summary>
      <pre class="update-said" dir="auto">
        {said.join('\n')}
      </pre>
    </details>
  );
}
