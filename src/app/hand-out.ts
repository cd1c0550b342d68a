// Shows a person what is kept of them, and hands all of it out as one file: into the chat where it can
// carry one, else into the notes folder for whoever sits at the machine.

import type { MessageBus } from '../bus/bus.ts';
import { accountName } from '../core/account.ts';
import type { OutboundAttachment } from '../core/attachment.ts';
import { sizeWords } from '../core/attachment-words.ts';
import { messageId } from '../core/ids.ts';
import { learningPatterns, readLearnings } from '../core/learnings.ts';
import { isoTime } from '../core/session-file.ts';
import { keepFirstLines, keepLastLines } from '../core/truncate.ts';
import type { Asking, KeptData } from '../gateway/memory-desk.ts';
import type { Clock } from '../lib/clock.ts';
import type { MediaStore } from '../media/media.ts';
import { LEARNINGS_FILE } from '../memory/files.ts';
import type { MemoryStore } from '../memory/memory.ts';
import { listNotes, type NoteReader, readNote } from '../memory/note-files.ts';
import type { StoredWorkingMemory, WorkingMemories } from '../memory/working-memory.ts';
import { exportSession } from '../sessions/export.ts';
import { sessionsOfChats } from '../sessions/forget.ts';
import type { UploadLimit } from '../tools/send-file.ts';

export type HandOutDeps = {
  readonly reader: NoteReader;
  readonly memory: Pick<MemoryStore, 'promptText'>;
  readonly working: Pick<WorkingMemories, 'of'>;
  readonly folder: string;
  readonly media: MediaStore;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly clock: Clock;
  chatsOf(asking: Asking): Promise<readonly string[]>;
  limit(account: ReturnType<typeof accountName>): UploadLimit | undefined;
};

const MAX_SHOWN_CHARS = 3000;
const MAX_WORKING_CHARS = 1500;
const MAX_LISTED = 20;

export function createHandOut(deps: HandOutDeps): Pick<KeptData, 'overview' | 'handOut'> {
  return {
    overview: (asking) => overview(asking, deps),
    async handOut(asking, format) {
      const { message, person } = asking;
      const day = isoTime(deps.clock.now()).slice(0, 10);
      const name = `nanobot-${day}.${format}`;
      const content = Buffer.from(await allOf(asking, format, deps));
      const most = deps.limit(accountName(message.chat))?.eachBytes;
      if (most !== undefined && content.length <= most) {
        const file = await stored(content, name, format, deps.media);
        const id = messageId(`${message.id}/export`);
        await deps.bus.send({ id, chat: message.chat, markdown: '', attachments: [file] });
        return `All that I keep of you is in the file (${sizeWords(content.length)}).`;
      }
      if (person.notes !== '') {
        return `All that I keep of you are ${sizeWords(content.length)}, and this chat carries no such file. My owner can hand it to you.`;
      }
      const path = `memory/sessions/export-${day}.${format}`;
      await deps.reader.files.write(deps.reader.workspace(), path, content.toString('utf8'));
      return `All that I keep of you is in \`${path}\` of the workspace (${sizeWords(content.length)}).`;
    },
  };
}

async function overview(asking: Asking, deps: HandOutDeps) {
  const { reader, memory, working, chatsOf, folder } = deps;
  const { notes } = asking.person;
  const entries = await listNotes(reader, notes);
  const learnt = (await readNote(reader, notes + LEARNINGS_FILE))?.text ?? '';
  const patterns = learningPatterns(readLearnings(learnt));
  const facts = keepLastLines(await memory.promptText(notes), MAX_SHOWN_CHARS);
  const sessions = await sessionsOfChats(folder, await chatsOf(asking));
  const here = await working.of(notes, asking.session);
  const files = entries.slice(0, MAX_LISTED).map(({ path, bytes }) => `${path} (${bytes} bytes)`);
  const more = entries.length - files.length;
  return [
    facts.trim() === '' ? 'I remember no facts about you yet.' : facts.trim(),
    ...(patterns === '' ? [] : [`What I learnt:\n${patterns}`]),
    ...(here === undefined ? [] : [workingText(here)]),
    `It stands in: ${files.join(', ') || 'no file yet'}${more > 0 ? ` and ${more} more` : ''}.`,
    `Conversations that I can look through for you: ${sessions.length}. ` +
      '/export sends you all of it, /forget <words> takes something out for good.',
  ].join('\n\n');
}

function workingText({ status, updated, body }: StoredWorkingMemory): string {
  const when = updated.slice(0, 16).replace('T', ' ');
  const text = keepFirstLines(body.trim(), MAX_WORKING_CHARS);
  return `Working memory of this conversation (${status}, ${when} UTC):\n${text}`;
}

async function allOf(asking: Asking, format: 'md' | 'jsonl', deps: HandOutDeps): Promise<string> {
  const { reader, folder, chatsOf } = deps;
  const { notes } = asking.person;
  const paths = [
    ...(await listNotes(reader, notes)).map(({ path }) => path),
    notes + LEARNINGS_FILE,
  ];
  const pieces: string[] = [];
  for (const path of paths) {
    const note = await readNote(reader, path);
    if (note === undefined) continue;
    const line = JSON.stringify({ type: 'note', path, text: note.text });
    pieces.push(format === 'md' ? `# ${path}\n\n${note.text.trim()}\n\n` : `${line}\n`);
  }
  for (const session of await sessionsOfChats(folder, await chatsOf(asking))) {
    for await (const piece of exportSession(folder, session, format)) pieces.push(piece);
  }
  return pieces.join('');
}

async function stored(
  content: Uint8Array,
  name: string,
  format: 'md' | 'jsonl',
  media: MediaStore,
): Promise<OutboundAttachment> {
  const { id, sizeBytes } = await media.put(content, { maxBytes: content.length });
  const mimeType = format === 'md' ? 'text/markdown' : 'application/jsonl';
  return { kind: 'document', media: id, name, mimeType, sizeBytes };
}
