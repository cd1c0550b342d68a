// What the HTTP API answers about notes; the page has its types from here.

import { z } from 'zod';

const note = z.object({
  path: z.string().describe('In the workspace, e.g. memory/MEMORY.md.'),
  bytes: z.number(),
  modifiedAt: z.number().describe('Epoch milliseconds.'),
});
export const noteFolders = z.object({
  isOn: z.boolean().describe('memory.enabled: while it is false, nothing is noted.'),
  folders: z
    .array(
      z.object({
        folder: z.string().describe('Empty: of the owners; else people/<id>/ or groups/<id>/.'),
        name: z.string().exactOptional().describe('The person.'),
        notes: z.array(note).describe('Newest first.'),
      }),
    )
    .describe('Of the owners first.'),
});
export const shownNote = z.object({
  path: z.string(),
  text: z.string().describe('Empty if the file does not exist.'),
  version: z
    .string()
    .describe('Sent back with a change, which is refused if the file changed meanwhile.'),
  isReadOnly: z.boolean().describe('Extracts of conversations.'),
});

const folder = z
  .string()
  .regex(/^(?:(?:people|groups)\/[\w-]+\/)?$/)
  .describe('Whose: as in the list of notes.');
const words = z.string().trim().min(1).max(500).describe('All occur in what is meant.');
export const forgetSearch = z.strictObject({ folder, words });
export const forgetRequest = forgetSearch.extend({
  id: z
    .string()
    .regex(/^[\w-]{1,64}$/)
    .describe('Of the request: a repeat is the same one.'),
});
export const forgetPlaces = z.object({
  count: z.number(),
  places: z
    .array(
      z.object({
        where: z.string(),
        text: z.string(),
        session: z.string().exactOptional().describe('The conversation that has it.'),
      }),
    )
    .describe('The first of them.'),
});
export const forgetDone = z.object({ text: z.string().describe('What was deleted.') });

export type ForgetPlaces = z.infer<typeof forgetPlaces>;
export type ForgetDone = z.infer<typeof forgetDone>;
export type NoteFolders = z.infer<typeof noteFolders>;
export type ShownNote = z.infer<typeof shownNote>;
