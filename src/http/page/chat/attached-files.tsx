// Files of the next message: uploaded as soon as they are chosen, each with its state and a button
// that removes it.

import { computed, type ReadonlySignal, signal } from '@preact/signals';
import { t } from '/texts.js';
import { sizeText } from './file-size.ts';
import { type Api, IconButton, reasonOf, type UploadedFile } from './parts.tsx';

const MAX_FILES = 10;

type Entry = {
  readonly key: number;
  /** Where it was attached. */
  readonly chat: string | undefined;
  readonly name: string;
  readonly stop: AbortController;
  readonly uploaded?: UploadedFile;
};

type AttachedFiles = {
  /** Of the opened chat. */
  readonly entries: ReadonlySignal<readonly Entry[]>;
  add(files: Iterable<File>): void;
  remove(key: number): void;
  /** Attaches what was uploaded for an earlier message. */
  putBack(uploaded: readonly UploadedFile[]): void;
  /** Detaches all. */
  clear(): void;
};

export function createAttachedFiles(
  chat: ReadonlySignal<string | undefined>,
  upload: Api['upload'],
  tell: (problem: string) => void,
): AttachedFiles {
  const all = signal<readonly Entry[]>([]);
  const entries = computed(() => all.value.filter((one) => one.chat === chat.value));
  let lastKey = 0;

  function attach(name: string, uploaded?: UploadedFile): Entry {
    lastKey += 1;
    const stop = new AbortController();
    const entry = { key: lastKey, chat: chat.value, name, stop, ...(uploaded && { uploaded }) };
    all.value = [...all.value, entry];
    return entry;
  }

  async function begin(file: File) {
    const { name } = file;
    const entry = attach(name);
    try {
      const uploaded = await upload(file, entry.stop.signal);
      all.value = all.value.map((one) => (one.key === entry.key ? { ...one, uploaded } : one));
    } catch (error) {
      if (entry.stop.signal.aborted) return;
      remove(entry.key);
      tell(t`${name} was not attached: ${reasonOf(error)}`);
    }
  }

  function remove(key: number) {
    all.value.find((one) => one.key === key)?.stop.abort();
    all.value = all.value.filter((one) => one.key !== key);
  }

  return {
    entries,
    add(files) {
      for (const file of files) {
        if (entries.value.length >= MAX_FILES)
          return tell(t`A message can have at most ${MAX_FILES} files.`);
        void begin(file);
      }
    },
    remove,
    putBack(uploaded) {
      for (const file of uploaded) attach(file.name, file);
    },
    clear() {
      const cleared = entries.value;
      all.value = all.value.filter((one) => !cleared.includes(one));
    },
  };
}

export function AttachedList({ files }: { readonly files: AttachedFiles }) {
  return (
    <div id="composer-files" class="files">
      {files.entries.value.map(({ key, name, uploaded }) => (
        <span class="file" key={key}>
          <span class="file-name">{name}</span>
          <span class="file-size">
            {uploaded === undefined ? t`uploading…` : sizeText(uploaded.sizeBytes)}
          </span>
          <IconButton
            icon="failed"
            label={t`Remove ${name}`}
            class="small"
            onClick={() => files.remove(key)}
          />
        </span>
      ))}
    </div>
  );
}
