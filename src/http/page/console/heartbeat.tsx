// The heartbeat, a file of tasks that the agent looks at regularly, and the quiet hours. Their settings
// are those of the configuration and are saved as there.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { ShownConfiguration } from '../../../features/configuration/rules/views.ts';
import type { ShownHeartbeat } from '../../../features/schedule/rules/heartbeat-view.ts';
import { Button, Form, Problem } from '../controls.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import {
  Fact,
  Moment,
  type PageParts,
  Shown,
  useAct,
  useLive,
  useRead,
  type ViewProps,
} from './parts.tsx';
import { QuietHours } from './quiet-hours.tsx';
import { VariableNote } from './variable-note.tsx';

const HEARTBEAT = '/api/v1/heartbeat';
const CONFIGURATION = '/api/v1/configuration';
const MAX_MINUTES = 10_080;

type Setting = readonly [path: string, value: string | number | boolean];

/** A change of other settings made meanwhile stays. */
async function saveSettings({ api }: PageParts, settings: readonly Setting[]) {
  const { version } = (await api.getJson(CONFIGURATION)) as ShownConfiguration;
  const changes = settings.map(([path, value]) => ({ path, value }));
  await api.postJson(CONFIGURATION, { version, changes });
}

export function HeartbeatCards({ parts }: ViewProps) {
  const live = useLive<ShownHeartbeat>(parts, FIRST_ASKED.schedules.heartbeat);
  const { found } = useRead<ShownConfiguration>(parts, FIRST_ASKED.schedules.configuration);
  const noteOn = (path: string) => (
    <VariableNote variables={found.value?.variables ?? []} path={path} />
  );
  return (
    <Shown
      live={live}
      show={(shown) => (
        <>
          <Heartbeat parts={parts} shown={shown} noteOn={noteOn} />
          <QuietHours
            hours={shown.quietHours}
            timeZone={shown.timeZone}
            note={noteOn('quietHours')}
            save={(hours) => saveSettings(parts, [['quietHours', hours]])}
          />
        </>
      )}
    />
  );
}

type HeartbeatProps = ViewProps & { readonly shown: ShownHeartbeat };
/** What says that a variable of the environment sets the setting. */
type NoteOn = { readonly noteOn: (path: string) => ComponentChildren };

function Heartbeat({ parts, shown, noteOn }: HeartbeatProps & NoteOn) {
  const { isOn, everyMins, activeHours, text, hasTasks, isRunning, lookedAt, begunAt } = shown;
  const isEditing = useSignal(false);
  const { isBusy, said, problem, act } = useAct();
  const edit = useRef<HTMLButtonElement>(null);
  const when = activeHours === '' ? t`at any time` : activeHours;
  return (
    <section class="card" aria-label={t`Heartbeat`}>
      <h2>
        {t`Heartbeat`}
        {!isOn && <span class="badge">{t`off`}</span>}
        {isRunning && <span class="badge">{t`running`}</span>}
      </h2>
      <p class="soft">
        {t`Every ${everyMins} minutes, ${when}, the agent looks at this list (HEARTBEAT.md) and does what is due. Without a task, no model is called.`}
      </p>
      {isEditing.value ? (
        <Edit
          parts={parts}
          shown={shown}
          close={(done) => {
            isEditing.value = false;
            said.value = done;
            setTimeout(() => edit.current?.focus());
          }}
        />
      ) : (
        <>
          {hasTasks ? <pre dir="auto">{text}</pre> : <p>{t`There is no task in it.`}</p>}
          <dl class="facts">
            <Fact name={t`Last look`}>
              {lookedAt === undefined ? t`not yet` : <Moment at={lookedAt} />}
            </Fact>
            <Fact name={t`Last with a task`}>
              {begunAt === undefined ? t`not yet` : <Moment at={begunAt} />}
            </Fact>
          </dl>
          <div class="actions">
            <Button
              text={t`Edit the list`}
              ref={edit}
              onClick={() => {
                said.value = '';
                isEditing.value = true;
              }}
            />
            <Button
              text={t`Look now`}
              disabled={isBusy.value || isRunning || !hasTasks}
              onClick={() =>
                act(() => parts.api.postJson(`${HEARTBEAT}/run`, {}), t`The agent looks at it now.`)
              }
            />
            <Button
              text={isOn ? t`Switch off` : t`Switch on`}
              disabled={isBusy.value}
              onClick={() =>
                act(
                  () => saveSettings(parts, [['heartbeat.enabled', !isOn]]),
                  isOn ? t`The heartbeat is off.` : t`The heartbeat is on.`,
                )
              }
            />
          </div>
          {noteOn('heartbeat.enabled')}
          <Times
            key={`${everyMins} ${activeHours}`}
            shown={shown}
            noteOn={noteOn}
            save={(settings) => act(() => saveSettings(parts, settings), t`Saved.`)}
          />
        </>
      )}
      <p class="soft" role="status" hidden={said.value === ''}>
        {said.value}
      </p>
      <Problem text={problem.value} />
    </section>
  );
}

type TimesProps = NoteOn & {
  readonly shown: ShownHeartbeat;
  readonly save: (settings: readonly Setting[]) => Promise<unknown>;
};

function Times({ shown, noteOn, save }: TimesProps) {
  const submit = (typed: FormData) =>
    save([
      ['heartbeat.everyMins', Number(typed.get('everyMins'))],
      ['heartbeat.activeHours', String(typed.get('activeHours')).trim()],
    ]);
  return (
    <details>
      <summary>{t`Times`}</summary>
      <Form class="person-form" submit={submit}>
        <label>
          {t`Minutes between two looks`}
          <input
            name="everyMins"
            type="number"
            required
            min={1}
            max={MAX_MINUTES}
            defaultValue={String(shown.everyMins)}
          />
        </label>
        {noteOn('heartbeat.everyMins')}
        <label>
          {t`Hours, empty: at any time`}
          <input
            name="activeHours"
            autocomplete="off"
            placeholder="08:00-22:00"
            defaultValue={shown.activeHours}
          />
        </label>
        {noteOn('heartbeat.activeHours')}
        <div class="actions">
          <Button text={t`Save`} type="submit" />
        </div>
      </Form>
    </details>
  );
}

type EditProps = HeartbeatProps & { readonly close: (said: string) => void };

/** Keeps the version it began with: a change made meanwhile is not overwritten. */
function Edit({ parts, shown, close }: EditProps) {
  const begun = useRef(shown);
  const field = useRef<HTMLTextAreaElement>(null);
  const { problem, act } = useAct();
  useLayoutEffect(() => field.current?.focus(), []);

  const save = () =>
    act(async () => {
      const { version } = begun.current;
      await parts.api.postJson(HEARTBEAT, { text: field.current?.value ?? '', version });
      close(t`Saved.`);
    });

  return (
    <>
      <textarea
        ref={field}
        class="note"
        rows={8}
        dir="auto"
        aria-label={t`Tasks of the heartbeat`}
        placeholder={t`- Every morning: tell me what is in the calendar today`}
        defaultValue={begun.current.text}
        onKeyDown={({ key, isComposing }) => {
          if (key === 'Escape' && !isComposing) close('');
        }}
      />
      <Problem text={problem.value} />
      <div class="actions">
        <Button text={t`Save`} look="primary" onClick={save} />
        <Button text={t`Cancel`} onClick={() => close('')} />
      </div>
    </>
  );
}
