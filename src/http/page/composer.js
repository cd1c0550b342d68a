// The message field: Enter sends, Shift+Enter starts a line; files are added by a button, by
// pasting and by dropping; a button stops the current answer.

import { createAttachedFiles } from './attached-files.js';
import { iconButton } from './element.js';
import { t } from './texts.js';

const MAX_CHARS = 200_000;

export function createComposer({ form, field, buttons, note, files }, { onSend, onStop, upload }) {
  const attached = createAttachedFiles(files, { upload, tell, onChange: fitHeight });
  const send = iconButton('send', t`Send`, submit, 'primary');
  const stop = iconButton('stop', t`Stop the answer`, onStop, 'stop');
  stop.hidden = true;
  const attach = iconButton('attach', t`Attach files`, () => attached.choose());
  buttons.append(attach, stop, send);

  function submit() {
    const text = field.value.trim();
    if (text === '' && attached.isEmpty()) return;
    if (attached.isUploading()) return tell(t`A file is still being uploaded.`);
    if (text.length > MAX_CHARS) {
      note.textContent = t`Too long: ${text.length} characters; the limit is ${MAX_CHARS}.`;
      return;
    }
    const uploaded = attached.take();
    field.value = '';
    fitHeight();
    onSend(text, uploaded.length === 0 ? undefined : uploaded);
    field.focus();
  }

  /** As high as its text, up to the limit of the style sheet. */
  function fitHeight() {
    note.textContent = '';
    field.style.height = 'auto';
    field.style.height = `${field.scrollHeight}px`;
    send.disabled = field.value.trim() === '' && attached.isEmpty();
  }

  function tell(problem) {
    note.textContent = problem;
  }

  function takeFiles(event, source) {
    if (source === null || source.files.length === 0) return;
    event.preventDefault();
    attached.add(source.files);
  }

  field.addEventListener('paste', (event) => takeFiles(event, event.clipboardData));
  document.addEventListener('dragover', (event) => {
    if (event.dataTransfer.types.includes('Files')) event.preventDefault();
  });
  document.addEventListener('drop', (event) => takeFiles(event, event.dataTransfer));
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
    tell,
  };
}
