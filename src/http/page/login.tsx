// Login of this page: by the one-time code of the link that opened it, or else by what the person
// types. The session is stored for all tabs until the gateway ends it.

import { useSignal } from '@preact/signals';
import { render } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import { reasonOf } from './chat/parts.tsx';
import { Form, Problem } from './controls.tsx';

type LoginApi = { send(path: string, body: object, token?: string): Promise<unknown> };

const SESSION_KEY = 'nanobot.session';
const CODE = /#login=([\w-]+)$/;
/** Reports the result of a link to this tab's question; other tabs see a login by `storage`. */
const TRIED = 'nanobot-login';

/** The session that requests carry in their header; null before the first login. */
export const session = () => localStorage.getItem(SESSION_KEY);

/** Removes a login that the gateway has ended, unless another tab has a new one already. */
export function forgetSession(ended: string | null): void {
  if (session() === ended) localStorage.removeItem(SESSION_KEY);
}

/** Takes the code out of the page's URL: it must not stay in the history. */
export function takeCode(): string | undefined {
  const code = CODE.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(undefined, '', location.pathname);
  return code;
}

/** Throws the gateway's message if the code is not valid. */
export async function redeem(api: LoginApi, code: string): Promise<void> {
  try {
    const answer = (await api.send('/api/login', { code })) as { readonly session: string };
    localStorage.setItem(SESSION_KEY, answer.session);
    window.dispatchEvent(new CustomEvent(TRIED));
  } catch (error) {
    window.dispatchEvent(new CustomEvent(TRIED, { detail: reasonOf(error) }));
    throw error;
  }
}

/** Asks for a link or the token; concurrent callers share one answer. */
export function createLoginQuestion(api: LoginApi) {
  let asking: Promise<void> | undefined;
  return (problem: string) => {
    asking ??= ask(api, problem).finally(() => {
      asking = undefined;
    });
    return asking;
  };
}

/** Resolves once this tab or another one is logged in. */
async function ask(api: LoginApi, problem: string): Promise<void> {
  const place = document.body.appendChild(document.createElement('div'));
  await new Promise<void>((resolve) =>
    render(<LoginDialog {...{ api, problem }} onDone={resolve} />, place),
  );
  render(null, place);
  place.remove();
}

/** Accepts a link as it was printed, or the token, which can create one. */
async function logIn(api: LoginApi, typed: string): Promise<void> {
  const code = CODE.exec(typed)?.[1];
  if (code !== undefined) return redeem(api, code);
  const answer = (await api.send('/api/links', {}, typed)) as { readonly code: string };
  return redeem(api, answer.code);
}

type DialogProps = {
  readonly api: LoginApi;
  readonly problem: string;
  readonly onDone: () => void;
};

function LoginDialog({ api, problem, onDone }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const shown = useSignal(problem);
  useLayoutEffect(() => {
    const over = new AbortController();
    const look = (event?: Event) => {
      if (event instanceof CustomEvent && event.detail !== null) shown.value = event.detail;
      if (session() !== null) onDone();
    };
    for (const type of ['storage', TRIED]) window.addEventListener(type, look, over);
    dialog.current?.showModal();
    input.current?.focus();
    look();
    return () => over.abort();
  }, []);
  async function submit() {
    const typed = input.current?.value.trim() ?? '';
    if (typed === '') return;
    try {
      await logIn(api, typed);
    } catch (error) {
      shown.value = reasonOf(error);
      input.current?.select();
    }
  }
  return (
    <dialog
      ref={dialog}
      class="login-dialog"
      aria-labelledby="login-title"
      onCancel={(event) => event.preventDefault()}
    >
      <Form submit={submit}>
        <h2 id="login-title">{t`Log in to this gateway`}</h2>
        <p>
          {t`In a terminal,`} <code>{'nanobot link'}</code>
          {t` prints a link that opens this page logged in. Or paste that link or the gateway’s token here.`}
        </p>
        <label for="login">{t`Link or token`}</label>
        <input
          ref={input}
          type="password"
          id="login"
          autocomplete="off"
          required
          spellcheck={false}
        />
        <Problem text={shown.value} />
        <button type="submit" class="primary">
          {t`Continue`}
        </button>
      </Form>
    </dialog>
  );
}
