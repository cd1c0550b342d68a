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

export type NoteFolders = z.infer<typeof noteFolders>;
export type ShownNote = z.infer<typeof shownNote>;
