// Files of the next message: uploaded as soon as they are chosen, each with its state and a button
// that removes it.

import { element, iconButton } from './element.js';
import { sizeText } from './file-size.js';
import { t } from './texts.js';

const MAX_FILES = 10;

export function createAttachedFiles(node, { upload, tell, onChange }) {
  let entries = [];
  const input = element('input', { type: 'file', multiple: true, hidden: true });
  input.addEventListener('change', () => {
    add(input.files);
    input.value = '';
  });
  node.after(input);

  function add(files) {
    for (const file of files) {
      if (entries.length >= MAX_FILES)
        return tell(t`A message can have at most ${MAX_FILES} files.`);
      begin(file);
    }
  }

  async function begin(file) {
    const stop = new AbortController();
    const state = element('span', { className: 'file-size' }, 'uploading…');
    const name = element('span', { className: 'file-name' }, file.name);
    const leave = iconButton('failed', t`Remove ${file.name}`, () => remove(entry), 'small');
    const entry = { stop, chip: element('span', { className: 'file' }, name, state, leave) };
    entries.push(entry);
    node.append(entry.chip);
    onChange();
    try {
      entry.uploaded = await upload(file, stop.signal);
      state.textContent = sizeText(entry.uploaded.sizeBytes);
    } catch (error) {
      if (stop.signal.aborted) return;
      remove(entry);
      tell(t`${file.name} was not attached: ${error.message}`);
    }
  }

  function remove(entry) {
    entry.stop.abort();
    entry.chip.remove();
    entries = entries.filter((one) => one !== entry);
    onChange();
  }

  return {
    add,
    choose: () => input.click(),
    isEmpty: () => entries.length === 0,
    isUploading: () => entries.some(({ uploaded }) => uploaded === undefined),
    /** Returns the uploaded files and detaches them. */
    take() {
      const taken = entries.map(({ uploaded }) => uploaded);
      for (const { chip } of entries) chip.remove();
      entries = [];
      return taken;
    },
  };
}
