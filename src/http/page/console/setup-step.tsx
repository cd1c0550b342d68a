// A step of the setup: its questions one after the other, what it did, links and codes for a phone. Leaving
// it ends it.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { SetupEvent } from '../../../features/setup/rules/views.ts';
import { Button, Form, Problem } from '../controls.tsx';
import { type PageParts, problemText, useAct } from './parts.tsx';
import { capital, eventsOf, PhoneLogin, QrCode, Spinner, Stage, Words } from './setup-parts.tsx';

type Kind = SetupEvent['kind'];
type Of<K extends Kind> = Extract<SetupEvent, { readonly kind: K }>;
type Line = { readonly text: string; readonly tone: 'plain' | 'good' | 'warning' | 'bad' };

type Shown = {
  readonly lines: readonly Line[];
  readonly working?: string | undefined;
  readonly question?: Of<'question'> | undefined;
  readonly link?: Of<'link'> | undefined;
  readonly login: { readonly image?: string; readonly code?: string; readonly progress?: string };
  readonly result?: string | undefined;
};

/** The only channel whose steps show codes. */
const PHONE_PROGRAM = 'WhatsApp';
const NOTHING: Shown = { lines: [], login: {} };

function after(shown: Shown, event: SetupEvent): Shown {
  const said = (text: string, tone: Line['tone']) => ({
    lines: text === '' ? shown.lines : [...shown.lines, { text, tone }],
  });
  switch (event.kind) {
    case 'question':
      return { ...shown, question: event };
    case 'withdrawn':
      return event.id === shown.question?.id ? { ...shown, question: undefined } : shown;
    case 'note':
      return { ...shown, ...said(event.text, event.isWarning ? 'warning' : 'plain') };
    case 'working':
      return { ...shown, working: event.text };
    case 'worked':
      return { ...shown, ...said(event.text, 'good'), working: undefined, login: {} };
    case 'link':
      return { ...shown, link: event, login: {} };
    case 'login':
      return { ...shown, login: withStep(shown.login, event.step) };
    case 'failed':
      return { ...shown, ...said(event.problem, 'bad'), link: undefined, login: {} };
    case 'done':
      return { ...shown, result: event.text, question: undefined, login: {} };
  }
}

function withStep(login: Shown['login'], step: Of<'login'>['step']): Shown['login'] {
  if (step.kind === 'show_qr') return { ...login, image: step.image };
  if (step.kind === 'show_code') return { ...login, code: step.code };
  return { ...login, progress: step.text };
}

type StepProps = {
  readonly parts: PageParts;
  readonly title: string;
  readonly path: string;
  readonly body: object;
  readonly onOver: () => void;
};

export function SetupStep({ parts, title, path, body, onOver }: StepProps) {
  const shown = useSignal<Shown>(NOTHING);
  const lost = useSignal('');
  const attempt = useSignal(0);
  const wanted = JSON.stringify(body);
  useEffect(() => {
    const ended = new AbortController();
    shown.value = NOTHING;
    lost.value = '';
    const run = async () => {
      const stream = { path, body: JSON.parse(wanted), signal: ended.signal };
      try {
        for await (const event of eventsOf<SetupEvent>(parts, stream)) {
          if (ended.signal.aborted) return;
          shown.value = after(shown.value, event);
        }
      } catch (error) {
        if (!ended.signal.aborted) lost.value = problemText(error);
      }
      if (ended.signal.aborted || shown.value.result !== undefined || lost.value !== '') return;
      lost.value = t`The connection to the gateway was lost`;
    };
    void run();
    return () => ended.abort();
  }, [parts, path, wanted, attempt.value, shown, lost]);

  const { lines, working, question, link, login, result } = shown.value;
  const isLost = lost.value !== '';
  return (
    <section class="step" aria-label={title}>
      <div class="step-log" role="log">
        {lines.map(({ text, tone }, index) => (
          <p key={index} class={`step-line ${tone}`}>
            <Words text={text} />
          </p>
        ))}
        {working !== undefined && !isLost && (
          <p class="step-line working">
            <Spinner /> <span>{working}…</span>
          </p>
        )}
        {isLost && <p class="step-line bad">{lost.value}</p>}
      </div>
      {link !== undefined && result === undefined && !isLost && <PhoneLink link={link} />}
      {(login.image ?? login.code ?? login.progress) !== undefined && !isLost && (
        <PhoneLogin
          label={PHONE_PROGRAM}
          image={login.image}
          code={login.code}
          progress={capital(login.progress ?? '')}
        />
      )}
      {question !== undefined && !isLost && (
        <Answer
          key={question.id}
          parts={parts}
          question={question}
          onAnswered={() => {
            if (shown.value.question?.id === question.id) {
              shown.value = { ...shown.value, question: undefined };
            }
          }}
        >
          <Leave isDone={false} onOver={onOver} />
        </Answer>
      )}
      {result !== undefined && (
        <p class="step-line good" role="status">
          <b>{result}</b>
        </p>
      )}
      <div class="actions" hidden={question !== undefined && !isLost}>
        {isLost && (
          <Button
            text={t`Try again`}
            look="primary"
            onClick={() => {
              attempt.value += 1;
            }}
          />
        )}
        {(question === undefined || isLost) && (
          <Leave isDone={result !== undefined} onOver={onOver} />
        )}
      </div>
    </section>
  );
}

function Leave({ isDone, onOver }: { readonly isDone: boolean; readonly onOver: () => void }) {
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    if (isDone) button.current?.focus();
  }, [isDone]);
  return (
    <Button
      text={isDone ? t`Done` : t`Close`}
      look={isDone ? 'primary' : undefined}
      ref={button}
      onClick={onOver}
    />
  );
}

function PhoneLink({ link: { text, address, image } }: { readonly link: Of<'link'> }) {
  return (
    <figure class="phone-link">
      {image !== undefined && (
        <Stage>
          <QrCode image={image} />
        </Stage>
      )}
      <figcaption>
        <p>{text}</p>
        <p>{address.startsWith('http') ? <Words text={address} /> : <code>{address}</code>}</p>
      </figcaption>
    </figure>
  );
}

type AnswerProps = {
  readonly parts: PageParts;
  readonly question: Of<'question'>;
  readonly onAnswered: () => void;
  /** Beside the button that goes on. */
  readonly children: ComponentChildren;
};

function Answer({ parts, question, onAnswered, children }: AnswerProps) {
  const { isBusy, problem, act } = useAct();
  const field = useRef<HTMLInputElement>(null);
  const first = useRef<HTMLButtonElement>(null);
  const { id, form, message, initial, isOptional, choices } = question;
  useLayoutEffect(() => (field.current ?? first.current)?.focus(), []);

  async function send(answer: string) {
    const path = `/api/v1/setup/answers/${encodeURIComponent(id)}`;
    if (await act(() => parts.api.postJson(path, { answer }))) onAnswered();
    else field.current?.focus();
  }

  if (form === 'choice') {
    return (
      <fieldset class="choices-list" aria-label={message}>
        <p>{message}</p>
        {choices.map(({ value, label, hint }) => (
          <button
            key={value}
            ref={value === initial ? first : null}
            type="button"
            class={value === initial ? 'button primary' : 'button'}
            disabled={isBusy.value}
            onClick={() => send(value)}
          >
            <span>{label}</span>
            {hint !== undefined && <span class="hint">{hint}</span>}
          </button>
        ))}
        <Problem text={problem.value} />
        {children}
      </fieldset>
    );
  }
  const common = {
    id,
    ref: field,
    required: !isOptional,
    autocapitalize: 'none',
    spellcheck: false,
    'aria-invalid': problem.value !== '',
  } as const;
  return (
    <Form class="answer" submit={() => send(field.current?.value ?? '')}>
      <label for={id}>
        <Words text={message} />
        {form === 'secret' ? (
          <input type="password" autocomplete="new-password" {...common} />
        ) : (
          <input type="text" autocomplete="off" defaultValue={initial} {...common} />
        )}
      </label>
      <Problem text={problem.value} />
      <div class="actions">
        <Button text={t`Continue`} look="primary" type="submit" disabled={isBusy.value} />
        {children}
      </div>
    </Form>
  );
}
