// Shows a person what is stored about them, and exports all of it as one file: into the chat where
// it can carry one, otherwise into the notes folder of the workspace.

import type { MessageBus } from '../../kernel/bus/bus.ts';
import { MediaError, type MediaStore } from '../../kernel/media/media.ts';
import { type OutboundAttachment, sizeWords } from '../../kernel/message/attachment.ts';
import { accountName, messageId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import {
  type DataReach,
  type ExportFormat,
  exported,
  type PersonalData,
} from '../../kernel/personal-data.ts';
import { type SessionFiles, sessionsOfChats } from '../../kernel/sessions/forget.ts';
import { isoTime } from '../../kernel/sessions/rules/file.ts';
import { keepFirstLines, keepLastLines } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { UploadLimit } from '../../tools/files/chat-files.ts';
import { LEARNINGS_FILE, listNotes, type MemoryStore, type NoteReader, readNote } from './notes.ts';
import type { Asking } from './personal-data.ts';
import { exportPath, type HandedOut } from './personal-data.ts';
import { learningPatterns, readLearnings } from './rules/memory-notes.ts';
import type { StoredWorkingMemory, WorkingMemories } from './working-memory.ts';

type DataExportDeps = {
  readonly reader: NoteReader;
  readonly memory: Pick<MemoryStore, 'promptText'>;
  readonly working: Pick<WorkingMemories, 'of'>;
  readonly sessionFiles: Pick<SessionFiles, 'folder' | 'complete'>;
  readonly media: Pick<MediaStore, 'put'>;
  readonly handedOut: Pick<HandedOut, 'note'>;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly clock: Clock;
  /** The data that features store. */
  personalData(): readonly PersonalData[];
  chatsOf(asking: Asking): Promise<readonly string[]>;
  /** Includes the conversations started from their own. */
  reachOf(asking: Asking): Promise<DataReach>;
  limit(account: ReturnType<typeof accountName>): UploadLimit | undefined;
};

const MAX_SHOWN_CHARS = 3000;
const MAX_WORKING_CHARS = 1500;
const MAX_LISTED = 20;
const BLOCK_CHARS = 65_536;

export type DataExport = ReturnType<typeof createDataExport>;

export function createDataExport(deps: DataExportDeps) {
  return {
    /** A summary for the person. */
    overview: (asking: Asking) => overview(asking, deps),
    /** The facts and files in this folder of the workspace, for the person. */
    async notesOf(folder: string): Promise<string> {
      const facts = (await deps.memory.promptText(folder)).trim();
      const shown = keepLastLines(facts, MAX_SHOWN_CHARS);
      return [shown || t`I remember no facts about them.`, await filesText(folder, deps)].join(
        '\n\n',
      );
    },
    /** Sends all of it as a file; returns the answer for the person. */
    handOut: (asking: Asking, format: ExportFormat) =>
      sendAsFile(asking, format, { what: 'Everything I keep about you', name: 'nanobot' }, () =>
        allOf(asking, format, deps),
      ),
    /** Sends a part of it in the same way. */
    handOutPart: (
      asking: Asking,
      format: ExportFormat,
      what: string,
      content: () => AsyncIterable<string>,
    ) => sendAsFile(asking, format, { what, name: 'conversation' }, content),
  };

  async function sendAsFile(
    { message, person }: Asking,
    format: ExportFormat,
    { what, name }: { readonly what: string; readonly name: 'nanobot' | 'conversation' },
    content: () => AsyncIterable<string>,
  ): Promise<string> {
    const day = isoTime(deps.clock.now()).slice(0, 10);
    const all = () => inBlocks(content());
    const of = { name: `${name}-${day}.${format}`, format, chat: message.chat };
    const file = await stored(all(), of, deps);
    if (file !== undefined) {
      await deps.handedOut.note(person.notes, file.media);
      const id = messageId(`${message.id}/export`);
      await deps.bus.send({ id, chat: message.chat, markdown: '', attachments: [file] });
      return t`${what} is in the file (${sizeWords(file.sizeBytes)}).`;
    }
    if (person.notes !== '') {
      return t`Your data is larger than this chat can carry. My owner can give it to you.`;
    }
    const path = exportPath(person.notes, name === 'nanobot' ? day : `${day}-${name}`, format);
    await deps.reader.files.write(deps.reader.workspace(), path, all());
    return t`${what} is in \`${path}\` of the workspace.`;
  }
}

/** Undefined where the chat cannot carry such a file. */
async function stored(
  content: AsyncIterable<Uint8Array>,
  of: { readonly name: string; readonly format: ExportFormat; readonly chat: ChatRef },
  { media, limit }: DataExportDeps,
): Promise<OutboundAttachment | undefined> {
  const { name, format, chat } = of;
  const maxBytes = limit(accountName(chat))?.eachBytes;
  if (maxBytes === undefined) return undefined;
  try {
    const { id, sizeBytes } = await media.put(content, { maxBytes });
    const mimeType = format === 'md' ? 'text/markdown' : 'application/jsonl';
    return { kind: 'document', media: id, name, mimeType, sizeBytes };
  } catch (error) {
    if (error instanceof MediaError && error.code === 'media_too_large') return undefined;
    throw error;
  }
}

/** Keeps one block in memory, whatever the total length. */
async function* inBlocks(pieces: AsyncIterable<string>): AsyncGenerator<Uint8Array, void, void> {
  let block = '';
  for await (const piece of pieces) {
    block += piece;
    if (block.length < BLOCK_CHARS) continue;
    yield Buffer.from(block);
    block = '';
  }
  if (block !== '') yield Buffer.from(block);
}

async function overview(asking: Asking, deps: DataExportDeps) {
  const { reader, memory, working, chatsOf, sessionFiles } = deps;
  const { notes } = asking.person;
  const learnt = (await readNote(reader, notes + LEARNINGS_FILE))?.text ?? '';
  const patterns = learningPatterns(readLearnings(learnt));
  const facts = keepLastLines(await memory.promptText(notes), MAX_SHOWN_CHARS);
  const sessions = await sessionsOfChats(sessionFiles, await chatsOf(asking));
  const here = await working.of(notes, asking.session);
  return [
    facts.trim() === '' ? t`I remember no facts about you yet.` : facts.trim(),
    ...(patterns === '' ? [] : [t`What I learnt:\n${patterns}`]),
    ...(here === undefined ? [] : [workingText(here)]),
    await filesText(notes, deps),
    t`Conversations I can search for you: ${sessions.length}. ` +
      '/export sends you everything, /forget <words> deletes something for good.',
  ].join('\n\n');
}

async function filesText(notes: string, { reader }: Pick<DataExportDeps, 'reader'>) {
  const entries = await listNotes(reader, notes);
  const files = entries.slice(0, MAX_LISTED).map(({ path, bytes }) => t`${path} (${bytes} bytes)`);
  const more = entries.length - files.length;
  return t`Its files: ${files.join(', ') || t`no file yet`}${more > 0 ? t` and ${more} more` : ''}.`;
}

function workingText({ status, updated, body }: StoredWorkingMemory): string {
  const when = updated.slice(0, 16).replace('T', ' ');
  const text = keepFirstLines(body.trim(), MAX_WORKING_CHARS);
  return t`Working memory of this conversation (${status}, ${when} UTC):\n${text}`;
}

async function* allOf(
  asking: Asking,
  format: ExportFormat,
  { personalData, reachOf }: DataExportDeps,
): AsyncGenerator<string, void, void> {
  const reach = await reachOf(asking);
  for (const data of personalData()) yield* exported(data, reach, format);
}
