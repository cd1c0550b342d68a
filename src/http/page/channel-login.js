// Linking a channel's account: shows the steps that the gateway sends, including the QR code and
// the code to type. Leaving ends the attempt, and the gateway cleans up.

import { capital, withCode } from './channel-words.js';
import { element, icon } from './element.js';
import { readEvents } from './event-reader.js';
import { button, instructions, numberForm, picture, spinner, typed } from './login-parts.js';
import { t } from './texts.js';

/** The gateway sends a heartbeat every 15 s. */
const SILENCE_MS = 40_000;
/** The gateway's clock may differ from the browser's. */
const MIN_SHOWN_MS = 15_000;
const MAX_SHOWN_MS = 90_000;
const WAITING = t`Waiting for the phone. The code renews itself.`;

export function createChannelLogin(api, { name, label }, { onOver }) {
  const stage = element('div', { className: 'login-stage' });
  const code = element('div', { className: 'login-code', aria: { live: 'polite' } });
  const progress = element('p', { className: 'login-progress', role: 'status' });
  const number = numberForm((phoneNumber) => begin({ phoneNumber }));
  const node = element('section', { className: 'login' });
  let asked = {};
  let attempt;
  let expiry;

  function frame(...parts) {
    node.replaceChildren(...parts);
  }

  async function begin(options) {
    attempt?.abort();
    asked = options;
    const current = new AbortController();
    attempt = current;
    frame(stage, instructions(label), number.node, code, progress);
    stage.replaceChildren(spinner());
    code.replaceChildren();
    progress.textContent = t`Asking for a code…`;
    let isOver = false;
    try {
      for await (const step of steps(options, current)) {
        if (current !== attempt) return;
        isOver = step.kind === 'done' || step.kind === 'failed';
        show(step);
      }
    } catch (error) {
      if (current !== attempt) return;
      isOver = true;
      show({ kind: 'failed', reason: error.message, remedy: '' });
    }
    if (current === attempt && !isOver) {
      show({ kind: 'failed', reason: t`The connection to the gateway was lost`, remedy: '' });
    }
  }

  async function* steps(options, current) {
    let silence;
    const alive = () => {
      clearTimeout(silence);
      silence = setTimeout(() => current.abort(), SILENCE_MS);
    };
    try {
      const body = await api.openLogin(name, options, current.signal);
      alive();
      for await (const step of readEvents(body)) {
        alive();
        if (step !== undefined) yield step;
      }
    } finally {
      clearTimeout(silence);
    }
  }

  function show(step) {
    switch (step.kind) {
      case 'show_qr':
        return showPicture(step);
      case 'show_code':
        return code.replaceChildren(...typed(step));
      case 'progress':
        progress.textContent = capital(step.text);
        return;
      case 'done':
        return showDone(step);
      default:
        return showFailed(step);
    }
  }

  /** Hides an expired code, so that nobody scans it. */
  function showPicture({ image, expiresAt }) {
    clearTimeout(expiry);
    // The progress text ends with the first picture.
    if (stage.querySelector('img') === null) progress.textContent = WAITING;
    stage.replaceChildren(picture(image));
    const leftMs = Math.min(MAX_SHOWN_MS, Math.max(MIN_SHOWN_MS, expiresAt - Date.now()));
    expiry = setTimeout(() => stage.replaceChildren(spinner()), leftMs);
  }

  function showDone({ account }) {
    const close = button(t`Done`, () => onOver(), 'primary');
    frame(
      element('div', { className: 'login-mark good' }, icon('done')),
      element(
        'p',
        { className: 'login-result', role: 'status' },
        t`${label} is linked: ${account}`,
      ),
      element(
        'p',
        { className: 'login-remedy' },
        ...withCode(t`To let people in: \`nanobot pair list\`, or \`allowFrom\` in its settings.`),
      ),
      close,
    );
    close.focus();
  }

  function showFailed({ reason, remedy }) {
    const again = button(t`Try again`, () => begin(asked), 'primary');
    frame(
      element('div', { className: 'login-mark bad' }, icon('failed')),
      element('p', { className: 'login-result', role: 'alert' }, `${capital(reason)}.`),
      remedy === '' ? '' : element('p', { className: 'login-remedy' }, ...withCode(remedy)),
      again,
    );
    again.focus();
  }

  begin(asked);
  return {
    node,
    end() {
      const current = attempt;
      attempt = undefined;
      clearTimeout(expiry);
      current?.abort();
    },
  };
}
