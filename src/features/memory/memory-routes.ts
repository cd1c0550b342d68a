// Notes over HTTP: listed, read and edited by owners, as with an editor in the workspace. A change is
// refused if the file changed since it was read.

import { z } from 'zod';
import { MEMORY_FILE } from '../../agent/rules/prompt.ts';
import { LOCAL_OWNER, noteCommand } from '../../channels/local-channel.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, Refusal, type RouteHandlers, versionOf } from '../../kernel/http-routes.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/untrusted.ts';
import { t } from '../../lib/texts.ts';
import type { MemoryService } from './memory-service.ts';
import { allNotes, listNotes, MAX_NOTE_BYTES, type NoteReader, readNote } from './notes.ts';
import {
  forgetDone,
  forgetPlaces,
  forgetRequest,
  forgetSearch,
  noteFolders,
  shownNote,
} from './rules/views.ts';

const PLACE = new RegExp(`^(?:(?:${PEOPLE_FOLDER}|${GROUPS_FOLDER})/[\\w-]+/)?memory/`);
const FILE = /(?:^|\/)memory\/(?:MEMORY|\d{4}-\d{2}-\d{2}|sessions\/SESSION_[\w-]+)\.md$/;
const MAX_PATH_CHARS = 300;

const oneNote = z.object({
  path: z
    .string()
    .max(MAX_PATH_CHARS)
    .refine((path) => PLACE.test(path) && FILE.test(path), t`is not a file of notes`),
});

export function memoryRoutes(
  { live, people: { persons }, measuring: { audit } }: Kernel,
  reader: NoteReader,
  service: MemoryService,
) {
  const { files, workspace } = reader;

  async function folders() {
    const names = new Map(
      (await persons.list()).map(({ id, name }) => [`${PEOPLE_FOLDER}/${id}/`, name]),
    );
    const listed = (await allNotes(reader)).map(async (folder) => {
      const name = names.get(folder) ?? '';
      const notes = await listNotes(reader, folder);
      return { folder, ...(name === '' ? {} : { name }), notes: [...notes] };
    });
    const found = await Promise.all(listed);
    return found.filter(({ folder, notes }) => folder === '' || notes.length > 0);
  }

  async function read(path: string) {
    const text = (await readNote(reader, path))?.text ?? '';
    return { path, text, version: versionOf(text), isReadOnly: !isEditable(path) };
  }

  async function save(path: string, text: string, version: string): Promise<void> {
    if (!isEditable(path)) {
      const message = t`This is an extract of a conversation, which would be written again.`;
      throw new Refusal(400, 'read_only', message);
    }
    const change = (content: Buffer | undefined) => {
      if (versionOf(content?.toString('utf8') ?? '') === version) return text;
      const message = t`${path} was changed meanwhile. Read it again; your text is not saved.`;
      throw new Refusal(409, 'changed_meanwhile', message);
    };
    await files.update(workspace(), path, change, { maxBytes: MAX_NOTE_BYTES });
    noteCommand(audit, 'memory', 'edit', path);
  }

  return {
    'GET /api/v1/memory': endpoint(
      { summary: t`The notes of the owners, of each person and each group`, answer: noteFolders },
      async () => ({ isOn: live.config.memory.enabled, folders: await folders() }),
    ),
    'GET /api/v1/memory/:path': endpoint(
      { summary: t`One file of notes`, params: oneNote, answer: shownNote },
      ({ path }) => read(path),
    ),
    'POST /api/v1/memory/:path': endpoint(
      {
        ...{ summary: t`Replace the text of a file of notes`, params: oneNote, answer: shownNote },
        body: z.strictObject({
          text: z.string().max(MAX_NOTE_BYTES),
          version: z.string().max(100),
        }),
      },
      async ({ path }, { text, version }) => {
        await save(path, text, version);
        return read(path);
      },
    ),
    'POST /api/v1/forget/find': endpoint(
      {
        summary: t`Where words are kept about a person: notes, conversations, queues`,
        ...{ body: forgetSearch, answer: forgetPlaces },
      },
      async (_params, { folder, words }) => {
        const { places, count } = await service.findIn(folder, words);
        return { count, places: [...places] };
      },
    ),
    'POST /api/v1/forget': endpoint(
      {
        summary: t`Erase all of it for good, as /forget does`,
        ...{ body: forgetRequest, answer: forgetDone },
      },
      async (_params, { folder, words, id }) => {
        const text = await service.eraseIn(folder, words, `page/${id}`);
        // The audit does not keep what was to be forgotten.
        audit.note({ kind: 'command', fields: { command: 'forget', by: LOCAL_OWNER.id, folder } });
        return { text };
      },
    ),
  } satisfies RouteHandlers;
}

const isEditable = (path: string) =>
  path.endsWith(MEMORY_FILE) || /\/\d{4}-\d{2}-\d{2}\.md$/.test(path);
