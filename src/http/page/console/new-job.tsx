// A new schedule: the fields of a job, which a sentence can fill in for review.

import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { DraftJob } from '../../../features/schedule/rules/job-draft.ts';
import type { ShownJob } from '../../../features/schedule/rules/views.ts';
import { Button, Form, filledIn, Problem } from '../controls.tsx';
import { useAct, type ViewProps } from './parts.tsx';

const SCHEDULES = '/api/v1/schedules';
const EXAMPLES = ['in 20m', 'at 08:00', 'every 2h', '0 8 * * 1-5'];
const MAX_TEXT_CHARS = 8000;
const MAX_SENTENCE_CHARS = 2000;
/** A local model may take a while. */
const DRAFT_TIMEOUT_MS = 90_000;

export const KINDS: Readonly<Record<ShownJob['kind'], string>> = {
  ask: t`Task for the agent`,
  say: t`Reminder`,
  workflow: t`Workflow`,
};
type NewJobProps = ViewProps & {
  readonly made: (name: string) => void;
  readonly close: () => void;
};

export function NewJob({ parts, made, close }: NewJobProps) {
  const { isBusy, problem, act } = useAct();
  const form = useRef<HTMLFormElement>(null);
  const when = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => when.current?.focus(), []);

  function fill({ kind, ...draft }: DraftJob) {
    const fields = form.current?.elements;
    for (const [name, value] of Object.entries({ name: '', ...draft })) {
      const field = fields?.namedItem(name);
      if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) {
        field.value = value;
      }
    }
    const kinds = fields?.namedItem('kind');
    if (kinds instanceof RadioNodeList) kinds.value = kind;
    problem.value = '';
    when.current?.focus();
  }

  async function submit(typed: FormData) {
    const isDone = await act(async () => {
      const answer = await parts.api.postJson(SCHEDULES, filledIn(typed));
      made((answer as { readonly job: ShownJob }).job.name);
      close();
    });
    if (!isDone) when.current?.focus();
  }

  return (
    <Form
      ref={form}
      class="card"
      aria-label={t`New schedule`}
      submit={submit}
      onKeyDown={({ key, isComposing }) => {
        if (key === 'Escape' && !isComposing) close();
      }}
    >
      <Sentence parts={parts} fill={fill} />
      <fieldset>
        <legend>{t`What happens`}</legend>
        {(['say', 'ask'] as const).map((kind) => (
          <label key={kind}>
            <input type="radio" name="kind" value={kind} defaultChecked={kind === 'say'} />
            {KINDS[kind]}
          </label>
        ))}
      </fieldset>
      <label>
        {t`When`}
        <input
          ref={when}
          name="when"
          required
          autocomplete="off"
          aria-describedby="when-hint"
          aria-invalid={problem.value !== ''}
        />
      </label>
      <fieldset class="actions" aria-label={t`Examples`}>
        {EXAMPLES.map((example) => (
          <button
            key={example}
            type="button"
            class="chip"
            onClick={() => {
              if (when.current === null) return;
              when.current.value = example;
              when.current.focus();
            }}
          >
            {example}
          </button>
        ))}
      </fieldset>
      <p class="soft" id="when-hint">
        {t`The last example is 08:00 on weekdays: minute, hour, day of month, month, day of week.`}
      </p>
      <label>
        {t`What`}
        <textarea name="text" required rows={3} dir="auto" maxLength={MAX_TEXT_CHARS} />
      </label>
      <details>
        <summary>{t`More`}</summary>
        <label>
          {t`Name`}
          <input name="name" dir="auto" autocomplete="off" maxLength={60} />
        </label>
        <label>
          {t`Chat for the result`}
          <input name="to" autocomplete="off" placeholder="telegram:123456789" />
        </label>
      </details>
      <Problem text={problem.value} />
      <div class="actions">
        <Button text={t`Schedule`} look="primary" type="submit" disabled={isBusy.value} />
        <Button text={t`Cancel`} onClick={close} />
      </div>
    </Form>
  );
}

type SentenceProps = ViewProps & { readonly fill: (draft: DraftJob) => void };

/** Fills in the fields; nothing is saved. */
function Sentence({ parts, fill }: SentenceProps) {
  const sentence = useRef<HTMLInputElement>(null);
  const state = useSignal<'empty' | 'asked' | 'filled'>('empty');
  const { problem, act } = useAct();

  async function ask() {
    const said = sentence.current?.value.trim() ?? '';
    if (said === '' || state.value === 'asked') return;
    state.value = 'asked';
    const isDone = await act(async () => {
      const draft = await parts.api.postJson(
        `${SCHEDULES}/draft`,
        { sentence: said },
        { timeoutMs: DRAFT_TIMEOUT_MS },
      );
      fill(draft as DraftJob);
    });
    state.value = isDone ? 'filled' : 'empty';
  }

  return (
    <>
      <label for="sentence">{t`Say it in a sentence, or fill in the fields`}</label>
      <div class="line">
        <input
          ref={sentence}
          id="sentence"
          dir="auto"
          autocomplete="off"
          maxLength={MAX_SENTENCE_CHARS}
          placeholder={t`every weekday at 8 remind me of the news`}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.isComposing) return;
            event.preventDefault();
            void ask();
          }}
        />
        <Button text={t`Fill in`} disabled={state.value === 'asked'} onClick={ask} />
      </div>
      <p class="soft" role="status" hidden={state.value === 'empty'}>
        {state.value === 'asked' && t`The model reads it…`}
        {state.value === 'filled' &&
          t`Check what was understood, then choose “Schedule”. Nothing is saved yet.`}
      </p>
      <Problem text={problem.value} />
    </>
  );
}
