// Login of this page: by the one-time code of the link that opened it, or else by what the person
// types. The session is stored for all tabs until the gateway ends it.

import { t } from '/texts.js';
import { reasonOf } from './chat/parts.tsx';
import { element } from './element.ts';

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

/** Accepts a link as it was printed, or the token, which can create one. */
async function logIn(api: LoginApi, typed: string): Promise<void> {
  const code = CODE.exec(typed)?.[1];
  if (code !== undefined) return redeem(api, code);
  const answer = (await api.send('/api/links', {}, typed)) as { readonly code: string };
  return redeem(api, answer.code);
}

/** Resolves once this tab or another one is logged in. */
function ask(api: LoginApi, firstProblem: string): Promise<void> {
  return new Promise<void>((resolve) => {
    const input = element('input', {
      type: 'password',
      id: 'login',
      autocomplete: 'off',
      required: true,
      spellcheck: false,
    });
    const problem = element('p', { className: 'problem', role: 'alert' }, firstProblem);
    const over = new AbortController();
    const look = (event?: Event) => {
      if (event instanceof CustomEvent && event.detail !== null) problem.textContent = event.detail;
      if (session() === null) return;
      over.abort();
      dialog.remove();
      resolve();
    };
    const submit = async (event: Event) => {
      event.preventDefault();
      const typed = input.value.trim();
      if (typed === '') return;
      try {
        await logIn(api, typed);
      } catch (error) {
        problem.textContent = reasonOf(error);
        input.select();
      }
    };
    const dialog = createDialog(submit, input, problem);
    dialog.addEventListener('cancel', (event) => event.preventDefault());
    for (const type of ['storage', TRIED]) window.addEventListener(type, look, over);
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
    look();
  });
}

function createDialog(
  submit: (event: Event) => unknown,
  input: HTMLElement,
  problem: HTMLElement,
): HTMLDialogElement {
  return element(
    'dialog',
    { className: 'login-dialog', aria: { labelledby: 'login-title' } },
    element(
      'form',
      { on: { submit } },
      element('h2', { id: 'login-title' }, t`Log in to this gateway`),
      element(
        'p',
        {},
        'In a terminal, ',
        element('code', {}, 'nanobot link'),
        t` prints a link that opens this page logged in. Or paste that link or the gateway’s token here.`,
      ),
      element('label', { htmlFor: 'login' }, t`Link or token`),
      input,
      problem,
      element('button', { type: 'submit', className: 'primary' }, t`Continue`),
    ),
  );
}
