// Files of the next message: uploaded as soon as they are chosen, each with its state and a button
// that removes it.

import { type ReadonlySignal, signal } from '@preact/signals';
import { t } from '/texts.js';
import { sizeText } from './file-size.ts';
import { type Api, IconButton, reasonOf, type UploadedFile } from './parts.tsx';

const MAX_FILES = 10;

type Entry = {
  readonly key: number;
  readonly name: string;
  readonly stop: AbortController;
  readonly uploaded?: UploadedFile;
};

type AttachedFiles = {
  readonly entries: ReadonlySignal<readonly Entry[]>;
  add(files: Iterable<File>): void;
  remove(key: number): void;
  /** Returns the uploaded files and detaches them. */
  take(): readonly UploadedFile[];
};

export function createAttachedFiles(
  upload: Api['upload'],
  tell: (problem: string) => void,
): AttachedFiles {
  const entries = signal<readonly Entry[]>([]);
  let lastKey = 0;

  async function begin(file: File) {
    lastKey += 1;
    const entry = { key: lastKey, name: file.name, stop: new AbortController() };
    entries.value = [...entries.value, entry];
    try {
      const uploaded = await upload(file, entry.stop.signal);
      entries.value = entries.value.map((one) =>
        one.key === entry.key ? { ...one, uploaded } : one,
      );
    } catch (error) {
      if (entry.stop.signal.aborted) return;
      remove(entry.key);
      tell(t`${file.name} was not attached: ${reasonOf(error)}`);
    }
  }

  function remove(key: number) {
    entries.value.find((one) => one.key === key)?.stop.abort();
    entries.value = entries.value.filter((one) => one.key !== key);
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
    take() {
      const taken = entries.value.flatMap(({ uploaded }) => uploaded ?? []);
      entries.value = [];
      return taken;
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
