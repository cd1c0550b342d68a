// Linking an account by its owner's phone: a QR code that renews itself, or a code to type. Leaving ends the
// attempt, and the gateway cleans up.

import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { LinkEvent } from '../../../features/setup/rules/views.ts';
import { Button, Form, Problem } from '../controls.tsx';
import { type PageParts, problemText } from './parts.tsx';
import { capital, eventsOf, PhoneLogin, Words } from './setup-parts.tsx';

/** The gateway's clock may differ from the browser's. */
const MIN_SHOWN_MS = 15_000;
const MAX_SHOWN_MS = 90_000;

type Ending = Extract<LinkEvent, { readonly kind: 'done' | 'failed' }>;

type LinkProps = {
  readonly parts: PageParts;
  readonly label: string;
  readonly path: string;
  readonly onOver: () => void;
};

export function LinkAccount({ parts, label, path, onOver }: LinkProps) {
  const asked = useSignal<{ readonly phoneNumber?: string; readonly attempt: number }>({
    attempt: 0,
  });
  const image = useSignal<string | undefined>(undefined);
  const code = useSignal<string | undefined>(undefined);
  const progress = useSignal('');
  const ending = useSignal<Ending | undefined>(undefined);
  const { phoneNumber, attempt } = asked.value;

  useEffect(() => {
    const ended = new AbortController();
    let expiry: ReturnType<typeof setTimeout> | undefined;
    image.value = undefined;
    code.value = undefined;
    ending.value = undefined;
    progress.value = t`Asking for a code…`;

    function show(step: LinkEvent) {
      if (step.kind === 'progress') progress.value = capital(step.text);
      else if (step.kind === 'show_code') code.value = step.code;
      else if (step.kind === 'show_qr') {
        clearTimeout(expiry);
        // The progress text ends with the first picture.
        if (image.value === undefined) {
          progress.value = t`Waiting for the phone. The code renews itself.`;
        }
        image.value = step.image;
        const leftMs = Math.max(MIN_SHOWN_MS, step.expiresAt - Date.now());
        // An expired code is hidden, so that nobody scans it.
        expiry = setTimeout(
          () => {
            image.value = undefined;
          },
          Math.min(MAX_SHOWN_MS, leftMs),
        );
      } else ending.value = step;
    }

    async function follow() {
      const body = phoneNumber === undefined ? {} : { phoneNumber };
      try {
        const stream = { path, body, signal: ended.signal };
        for await (const step of eventsOf<LinkEvent>(parts, stream)) {
          if (ended.signal.aborted) return;
          show(step);
        }
      } catch (error) {
        if (ended.signal.aborted) return;
        ending.value = { kind: 'failed', reason: problemText(error), remedy: '' };
      }
      if (ended.signal.aborted || ending.value !== undefined) return;
      const reason = t`The connection to the gateway was lost`;
      ending.value = { kind: 'failed', reason, remedy: '' };
    }

    void follow();
    return () => {
      ended.abort();
      clearTimeout(expiry);
    };
  }, [parts, path, phoneNumber, attempt]);

  const again = () => {
    asked.value = { ...asked.value, attempt: attempt + 1 };
  };
  if (ending.value !== undefined) {
    return <Ended ending={ending.value} label={label} again={again} onOver={onOver} />;
  }
  return (
    <section class="step" aria-label={t`Link ${label}`}>
      <PhoneLogin label={label} image={image.value} code={code.value} progress={progress.value}>
        <NumberForm
          onNumber={(number) => {
            asked.value = { phoneNumber: number, attempt: attempt + 1 };
          }}
        />
      </PhoneLogin>
      <div class="actions">
        <Button text={t`Close`} onClick={onOver} />
      </div>
    </section>
  );
}

type EndedProps = Pick<LinkProps, 'label' | 'onOver'> & {
  readonly ending: Ending;
  readonly again: () => void;
};

function Ended({ ending, label, again, onOver }: EndedProps) {
  const next = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => next.current?.focus(), []);
  const isDone = ending.kind === 'done';
  return (
    <section class="step" aria-label={t`Link ${label}`}>
      {isDone ? (
        <p class="login-result good" role="status">
          {t`${label} is linked: ${ending.account}`}
        </p>
      ) : (
        <>
          <p class="login-result problem" role="alert">
            {capital(ending.reason)}.
          </p>
          <p class="login-remedy">
            <Words text={ending.remedy} />
          </p>
        </>
      )}
      <div class="actions">
        <Button
          text={isDone ? t`Done` : t`Try again`}
          look="primary"
          ref={next}
          onClick={isDone ? onOver : again}
        />
        {!isDone && <Button text={t`Close`} onClick={onOver} />}
      </div>
    </section>
  );
}

function NumberForm({ onNumber }: { readonly onNumber: (digits: string) => void }) {
  const problem = useSignal('');
  const field = useRef<HTMLInputElement>(null);
  return (
    <Form
      class="login-number"
      noValidate
      submit={() => {
        const typed = field.current?.value ?? '';
        const digits = typed.replace(/[\s./()-]/g, '').replace(/^(?:\+|00)/, '');
        const isNumber = /^[1-9]\d{7,14}$/.test(digits);
        problem.value = isNumber ? '' : t`Write it with its country code, like +49 151 1234567.`;
        if (isNumber) onNumber(digits);
      }}
    >
      <label for="login-number">
        {t`No camera? Enter the account’s phone number to get a code to type:`}
      </label>
      <div class="login-number-row">
        <input
          ref={field}
          id="login-number"
          type="tel"
          inputMode="tel"
          autocomplete="off"
          placeholder="+49 151 1234567"
        />
        <Button text={t`Get a code`} type="submit" />
      </div>
      <Problem text={problem.value} />
    </Form>
  );
}
