// A message of the person: its text, and the buttons that change or delete it. It only sends
// requests; the gateway decides what the message says.

import { t } from '/texts.js';
import type { Amendment } from './chat/events.ts';
import { type Child, element, iconButton } from './element.ts';
import { messageFoot } from './message.ts';

const MAX_CHARS = 200_000;

/** `onChange(kind, text)` is absent if nothing can be changed. */
type PersonMessage = {
  readonly text: string;
  readonly at: number;
  readonly files: Child;
  readonly onChange: ((kind: 'edited' | 'withdrawn', now: string) => void) | undefined;
};

export function createPersonMessage({ text, at, files, onChange }: PersonMessage) {
  const body = element('div', { className: 'body', dir: 'auto' }, text);
  const edited = element('span', { className: 'edited', hidden: true }, 'edited');
  const state = element('p', { className: 'state', hidden: true, role: 'status' });
  const edit = iconButton('edit', t`Edit message`, () => openEditor(body.textContent), 'small');
  const remove = iconButton('delete', t`Delete message`, askBeforeDeleting, 'small');
  const foot = messageFoot(at, () => body.textContent, body);
  foot.prepend(edited);
  if (onChange !== undefined) foot.append(...(text === '' ? [] : [edit]), remove);
  const node = element('article', { className: 'message person' }, files, body, foot, state);
  /** What replaces the foot: a text being changed, or a question. */
  let open: { readonly form: HTMLElement; readonly hidden: readonly HTMLElement[] } | undefined;

  function show(form: HTMLElement, ...hidden: readonly HTMLElement[]): void {
    close();
    open = { form, hidden };
    for (const part of hidden) part.hidden = true;
    foot.after(form);
  }

  function close(focused?: HTMLElement): void {
    open?.form.remove();
    for (const part of open?.hidden ?? []) part.hidden = false;
    open = undefined;
    focused?.focus();
  }

  /** Escape closes this form only. */
  function onEscape(leave: () => void) {
    return (event: Event) => {
      if (!(event instanceof KeyboardEvent)) return;
      if (event.key !== 'Escape' || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation();
      leave();
    };
  }

  function openEditor(draft: string): void {
    const field = element('textarea', { rows: 1, dir: 'auto', value: draft, maxLength: MAX_CHARS });
    field.setAttribute('aria-label', t`New text of the message`);
    const leave = () => close(edit);
    const form = element(
      'form',
      { className: 'editor', on: { keydown: onEscape(leave), submit: save } },
      field,
      row(textButton(t`Cancel`, leave), textButton(t`Save`, undefined, 'primary')),
    );
    show(form, body, foot, state);
    field.addEventListener('input', fitHeight);
    field.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      save(event);
    });
    fitHeight();
    field.focus();

    function fitHeight() {
      field.style.height = 'auto';
      field.style.height = `${field.scrollHeight}px`;
    }

    function save(event: Event) {
      event.preventDefault();
      const now = field.value.trim();
      if (now === '') return field.focus();
      leave();
      if (now === body.textContent) return tell('');
      tell('Saving…');
      onChange?.('edited', now);
    }
  }

  function askBeforeDeleting() {
    const keep = () => close(remove);
    const keepButton = textButton(t`Keep`, keep);
    const question = element(
      'div',
      { className: 'editor', role: 'group', on: { keydown: onEscape(keep) } },
      element('p', {}, t`Delete this message?`),
      row(keepButton, textButton(t`Delete`, confirm, 'danger')),
    );
    question.setAttribute('aria-label', t`Delete this message?`);
    show(question, foot, state);
    keepButton.focus();

    function confirm() {
      close();
      tell('Deleting…');
      onChange?.('withdrawn', '');
    }
  }

  function tell(words: string, isProblem = false): void {
    state.textContent = words;
    state.hidden = words === '';
    state.classList.toggle('problem', isProblem);
  }

  return {
    node,
    /** The gateway has confirmed it. */
    changed(now: string) {
      body.textContent = now;
      edited.hidden = false;
      tell('');
    },
    /** Requested, and not yet confirmed. */
    waits({ kind }: Amendment, reason = '') {
      tell(`${kind === 'edited' ? t`Saving` : t`Deleting`}… ${reason}`.trim());
    },
    /** A refused text stays in the editor. */
    refused({ kind }: Amendment, draft: string, reason: string) {
      if (kind === 'edited') openEditor(draft);
      state.hidden = false;
      tell(`${kind === 'edited' ? t`Not changed` : t`Not deleted`}: ${reason}`, true);
    },
  };
}

const row = (...buttons: readonly HTMLElement[]) =>
  element('div', { className: 'editor-buttons' }, ...buttons);

/** Without `onClick` it submits its form. */
function textButton(
  label: string,
  onClick: (() => void) | undefined,
  tone = '',
): HTMLButtonElement {
  const type = onClick === undefined ? 'submit' : 'button';
  const on: Record<string, () => void> = onClick === undefined ? {} : { click: onClick };
  return element('button', { type, className: `button ${tone}`.trim(), on }, label);
}
