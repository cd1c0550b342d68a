// Keeps the files that are being appended to open, up to a number, so that an append costs no open
// and close. A file in use is never closed; the one unused longest goes first.

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

export interface OpenFiles extends AsyncDisposable {
  /** Runs the task with the file open for appending. @throws ENOENT: it is never created here */
  use<T>(path: string, task: (file: FileHandle) => Promise<T>): Promise<T>;
  /** Closes the file if it is open, e.g. before it is repaired. */
  close(path: string): Promise<void>;
}

const APPEND = constants.O_WRONLY | constants.O_APPEND;

type Slot = { readonly file: Promise<FileHandle>; users: number };

export function createOpenFiles(maxFiles: number): OpenFiles {
  const slots = new Map<string, Slot>();

  async function drop(path: string, slot: Slot) {
    if (slots.get(path) === slot) slots.delete(path);
    const file = await slot.file.catch(() => undefined);
    await file?.close();
  }

  async function closeUnused() {
    const spare = [...slots].filter(([, slot]) => slot.users === 0);
    const surplus = spare.slice(0, Math.max(0, slots.size - maxFiles));
    await Promise.all(surplus.map(([path, slot]) => drop(path, slot)));
  }

  return {
    async use(path, task) {
      const slot = slots.get(path) ?? { file: open(path, APPEND), users: 0 };
      slot.users += 1;
      slots.delete(path);
      slots.set(path, slot);
      try {
        return await task(await slot.file);
      } catch (error) {
        if (slots.get(path) === slot) slots.delete(path);
        throw error;
      } finally {
        slot.users -= 1;
        if (slot.users === 0 && slots.get(path) !== slot) await drop(path, slot);
        if (slots.size > maxFiles) await closeUnused();
      }
    },
    async close(path) {
      const slot = slots.get(path);
      if (slot !== undefined) await drop(path, slot);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...slots].map(([path, slot]) => drop(path, slot)));
    },
  };
}
