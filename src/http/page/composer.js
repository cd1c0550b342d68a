// The message field: Enter sends, Shift+Enter begins a line; a button stops the answer under way.

import { iconButton } from './element.js';

const MAX_CHARS = 200_000;

export function createComposer({ form, field, buttons, note }, { onSend, onStop }) {
  const send = iconButton('send', 'Send', submit, 'primary');
  const stop = iconButton('stop', 'Stop the answer', onStop, 'stop');
  stop.hidden = true;
  buttons.append(stop, send);

  function submit() {
    const text = field.value.trim();
    if (text === '') return;
    if (text.length > MAX_CHARS) {
      note.textContent = `This is too long: ${text.length} characters, at most ${MAX_CHARS} are sent.`;
      return;
    }
    field.value = '';
    fitHeight();
    onSend(text);
    field.focus();
  }

  /** As high as its text, up to the limit of the style sheet. */
  function fitHeight() {
    note.textContent = '';
    field.style.height = 'auto';
    field.style.height = `${field.scrollHeight}px`;
    send.disabled = field.value.trim() === '';
  }

  field.addEventListener('input', fitHeight);
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
  });
  fitHeight();

  return {
    focus: () => field.focus(),
    setAnswering(isAnswering) {
      stop.hidden = !isAnswering;
    },
    /** Puts a text back for editing, before what is being typed. */
    takeBack(text) {
      field.value = field.value === '' ? text : `${text}\n${field.value}`;
      fitHeight();
      field.focus();
    },
    tell(problem) {
      note.textContent = problem;
    },
  };
}
