// Operations, back-ups: when the last was made and proved, the next step, and those that are kept.

import { useSignal } from '@preact/signals';
import { t } from '/texts.js';
import type { BackupEnd, BackupList, BackupState } from '../../../features/backup/rules/views.ts';
import { Button, bound, Form, filledIn, Options, Problem } from '../controls.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import { Ago, Fact, Moment, Shown, useAct, useLive, useRead, type ViewProps } from './parts.tsx';

const BACKUPS = '/api/v1/backups';
const MEGABYTE = 1_000_000;
const SHOWN = 10;

const EVERY: Readonly<Record<string, string>> = {
  hour: t`every hour`,
  day: t`every day`,
  week: t`every week`,
};
const sizeText = (bytes: number) => t`${(bytes / MEGABYTE).toFixed(1)} MB`;

export function Backups({ parts }: ViewProps) {
  const live = useLive<BackupState>(parts, FIRST_ASKED.operations.backups);
  return (
    <section class="card" id="backups" aria-labelledby="backups-title">
      <h2 id="backups-title">{t`Back-ups`}</h2>
      <Shown live={live} show={(state) => <BackupCard parts={parts} state={state} />} />
    </section>
  );
}

type StateProps = ViewProps & { readonly state: BackupState };

function BackupCard({ parts, state }: StateProps) {
  const { problem, act } = useAct();
  const { place, running, ended, failing } = state;
  const isSetUp = place !== '';
  const post = (path: string, body: object) => act(() => parts.api.postJson(path, body));

  return (
    <>
      {isSetUp ? (
        <BackupFacts state={state} />
      ) : (
        <p>{t`There is no back-up yet. One holds everything: conversations, memory, settings and keys.`}</p>
      )}
      {failing !== undefined && (
        <p class="view-problem">
          {t`Failing since`} <Moment at={failing.since} />: {failing.reason}
        </p>
      )}
      <Problem class="view-problem" text={problem.value} />
      {running === undefined ? (
        ended !== undefined && <Ended ended={ended} />
      ) : (
        <p class="said-so" role="status">
          {running.what === 'create'
            ? t`A back-up is being made. You may leave this page.`
            : t`A gateway is started on the restored back-up ${running.id ?? ''}. You may leave this page.`}
        </p>
      )}
      {isSetUp ? (
        <>
          <div class="actions">
            <Button
              text={t`Back up now`}
              look="primary"
              disabled={running !== undefined}
              onClick={() => post(BACKUPS, {})}
            />
          </div>
          <Kept state={state} parts={parts} post={post} />
          <details>
            <summary>{t`Change the place or the schedule`}</summary>
            <PlaceForm state={state} post={post} />
          </details>
        </>
      ) : (
        <PlaceForm state={state} post={post} />
      )}
    </>
  );
}

function BackupFacts({ state }: { readonly state: BackupState }) {
  const { made, verified, place, every, keep } = state;
  const schedule = every === '' ? t`only on request` : (EVERY[every] ?? t`every ${every}`);
  return (
    <dl class="facts">
      <Fact name={t`Last`}>
        {made === undefined ? (
          t`none yet`
        ) : (
          <>
            <Moment at={made.at} />, {sizeText(made.bytes)}
          </>
        )}
      </Fact>
      <Fact name={t`Tested by a start`}>
        {verified === undefined ? (
          t`never`
        ) : (
          <>
            <Moment at={verified.at} />
            {!verified.ok && <span class="problem">, {t`it failed`}</span>}
          </>
        )}
      </Fact>
      <Fact name={t`Kept in`}>
        <bdi>{place}</bdi>
      </Fact>
      <Fact name={t`Made`}>
        {schedule}
        {every !== '' && keep !== '' && t`, kept by the rule ${keep}`}
      </Fact>
    </dl>
  );
}

function Ended({ ended: { isOk, text, at } }: { readonly ended: BackupEnd }) {
  return (
    <p class={isOk ? 'said-so' : 'view-problem'} role={isOk ? 'status' : 'alert'}>
      <bdi>{text}</bdi> <Ago at={at} />
    </p>
  );
}

type ActProps = StateProps & {
  readonly post: (path: string, body: object) => Promise<unknown>;
};

/** Read again after each change. */
function Kept({ state, parts, post }: ActProps) {
  const passphrase = useSignal('');
  const { place, made, running, verified } = state;
  const { found, problem } = useRead<BackupList>(parts, BACKUPS, `${place} ${made?.id}`);
  const { backups = [] } = found.value ?? {};
  const { length } = backups;
  const body = passphrase.value === '' ? {} : { passphrase: passphrase.value };
  return (
    <>
      {problem.value !== '' && <p class="problem">{problem.value}</p>}
      {length > 0 && (
        <details open>
          <summary>{t`Kept: ${length}`}</summary>
          <ul class="backups">
            {backups.slice(0, SHOWN).map(({ id, at, files, bytes }) => (
              <li key={id} data-backup={id}>
                <span>
                  <Moment at={at} />
                  <span class="detail soft">
                    {t`${files} files, ${sizeText(bytes)}`}
                    {verified?.id === id && (verified.ok ? t`, tested` : t`, failed the test`)}
                  </span>
                </span>
                <Button
                  text={t`Test`}
                  disabled={running !== undefined}
                  aria-label={t`Test the back-up ${id}`}
                  onClick={() => post(`${BACKUPS}/${encodeURIComponent(id)}/verify`, body)}
                />
              </li>
            ))}
          </ul>
          {length > SHOWN && <p class="soft">{t`Older ones: nanobot backup list`}</p>}
          <details>
            <summary>{t`They are encrypted by a passphrase`}</summary>
            <label class="field-label">
              {t`Passphrase for the test; it is not kept`}
              <span class="line">
                <input type="password" autocomplete="off" {...bound(passphrase)} />
              </span>
            </label>
          </details>
        </details>
      )}
    </>
  );
}

function PlaceForm({ state, post }: Omit<ActProps, 'parts'>) {
  const { place, suggestedPlace, every, keep, running } = state;

  const chosen = every === '' && place !== '' ? 'never' : every || 'day';
  return (
    <Form
      class="fields"
      aria-label={t`Place and schedule of back-ups`}
      submit={(typed) => post(BACKUPS, filledIn(typed))}
    >
      <label class="field-label">
        {t`Folder on the gateway’s machine, or s3://bucket/prefix`}
        <input
          name="to"
          required
          autocomplete="off"
          aria-describedby="place-hint"
          defaultValue={place || suggestedPlace}
        />
      </label>
      <p class="soft" id="place-hint">
        {t`Another disk or a bucket survives the loss of this one.`}
      </p>
      <label class="field-label">
        {t`How often`}
        <select name="every" defaultValue={chosen}>
          {every !== '' && EVERY[every] === undefined && (
            <option value={every}>{t`every ${every}`}</option>
          )}
          <Options of={[...Object.entries(EVERY), ['never', t`only on request`]]} chosen={chosen} />
        </select>
      </label>
      <details>
        <summary>{t`More`}</summary>
        <label class="field-label">
          {t`Which ones stay: the newest of so many days, weeks and months`}
          <input name="keep" autocomplete="off" defaultValue={keep} placeholder="7d4w6m" />
        </label>
        <label class="field-label">
          {t`Passphrase, if the first back-up in a new place is to be encrypted; without it nobody can restore them`}
          <input name="passphrase" type="password" autocomplete="new-password" />
        </label>
      </details>
      <div class="actions">
        <Button
          text={place === '' ? t`Make the first back-up` : t`Save and back up now`}
          look="primary"
          type="submit"
          disabled={running !== undefined}
        />
      </div>
    </Form>
  );
}
