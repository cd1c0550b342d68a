// The message field: Enter sends, Shift+Enter starts a line; files are added by a button, by pasting
// and by dropping; voice messages are recorded; a slash lists the commands; a button stops the current
// answer. What is typed is kept for each chat.

import { type ReadonlySignal, signal, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { ChatSettings } from '../../../features/conversations/rules/chat-views.ts';
import type { Unsent } from '../outbox.ts';
import { AttachedList, createAttachedFiles } from './attached-files.tsx';
import { ChatOptions } from './chat-options.tsx';
import { COMPLETIONS, CompletionList, createCompletion, optionId } from './completion.tsx';
import { draftOf, keepDraft } from './drafts.ts';
import { type Api, IconButton, reasonOf, type UploadedFile } from './parts.tsx';
import { type Recording, record } from './recorder.ts';

const MAX_CHARS = 200_000;
const SECOND_MS = 1000;

type ComposerActions = {
  onSend(text: string, files: readonly UploadedFile[] | undefined): void;
  onStop(): void;
  readonly isAnswering: ReadonlySignal<boolean>;
};

export function createComposer(api: Api, { onSend, onStop, isAnswering }: ComposerActions) {
  const chat = signal<string | undefined>(undefined);
  const text = signal('');
  const note = signal('');
  const settings = signal<ChatSettings | undefined>(undefined);
  const tell = (problem: string) => {
    note.value = problem;
  };
  const files = createAttachedFiles(chat, (file, ended) => api.upload(file, ended), tell);
  const field = { current: null as HTMLTextAreaElement | null };
  const completion = createCompletion(api, (command) => {
    write(command);
    field.current?.focus();
  });

  function write(now: string) {
    text.value = now;
    note.value = '';
    completion.typed(now);
    if (chat.value !== undefined) keepDraft(chat.value, now);
  }

  function submit() {
    const now = text.value.trim();
    const entries = files.entries.value;
    if (now === '' && entries.length === 0) return;
    if (entries.some(({ uploaded }) => uploaded === undefined))
      return tell(t`A file is still being uploaded.`);
    if (now.length > MAX_CHARS)
      return tell(t`Too long: ${now.length} characters; the limit is ${MAX_CHARS}.`);
    const attached = entries.flatMap(({ uploaded }) => uploaded ?? []);
    try {
      onSend(now, attached.length === 0 ? undefined : attached);
    } catch {
      return tell(t`This browser has no room for another unsent message. Send it again later.`);
    }
    files.clear();
    write('');
    field.current?.focus();
  }

  function takeFiles(event: Event, source: DataTransfer | null) {
    if (source === null || source.files.length === 0) return;
    event.preventDefault();
    files.add(source.files);
  }

  document.addEventListener('dragover', (event) => {
    if (event.dataTransfer?.types.some((type) => type.toLowerCase() === 'files'))
      event.preventDefault();
  });
  document.addEventListener('drop', (event) => takeFiles(event, event.dataTransfer));

  function Composer() {
    const input = useRef<HTMLInputElement>(null);
    const now = text.value;
    const shown = completion.found.value;
    // As high as its text, up to the limit of the style sheet.
    useLayoutEffect(() => {
      const node = field.current;
      if (node === null) return;
      node.style.height = 'auto';
      node.style.height = `${node.scrollHeight}px`;
    }, [now]);
    return (
      <form
        id="composer"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <p id="composer-note" role="alert">
          {note.value}
        </p>
        <AttachedList files={files} />
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label={t`Files`}
          onChange={({ currentTarget }) => {
            files.add(currentTarget.files ?? []);
            currentTarget.value = '';
          }}
        />
        <CompletionList completion={completion} />
        <div class="field">
          <textarea
            id="text"
            rows={1}
            dir="auto"
            ref={field}
            value={now}
            readOnly={chat.value === undefined}
            placeholder={t`Message nanobot`}
            aria-label={t`Message`}
            aria-describedby="keys"
            aria-autocomplete="list"
            aria-controls={COMPLETIONS}
            aria-activedescendant={
              shown.length === 0 ? undefined : optionId(completion.chosen.value)
            }
            enterkeyhint="send"
            autocomplete="off"
            onInput={({ currentTarget }) => write(currentTarget.value)}
            onPaste={(event) => {
              if (!isFormattedText(event.clipboardData)) takeFiles(event, event.clipboardData);
            }}
            onKeyDown={(event) => {
              if (completion.key(event)) return;
              if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              submit();
            }}
          />
          <span id="buttons">
            <IconButton
              icon="attach"
              label={t`Attach files`}
              onClick={() => input.current?.click()}
            />
            {settings.value?.hears === true && (
              <VoiceButton onRecorded={(file) => files.add([file])} tell={tell} />
            )}
            <IconButton
              icon="stop"
              label={t`Stop the answer`}
              class="stop"
              hidden={!isAnswering.value}
              onClick={onStop}
            />
            <IconButton
              icon="send"
              label={t`Send`}
              class="primary"
              disabled={now.trim() === '' && files.entries.value.length === 0}
              onClick={submit}
            />
          </span>
        </div>
        <div class="below-field">
          {chat.value !== undefined && (
            <ChatOptions api={api} chat={chat.value} settings={settings} />
          )}
          <p id="keys">
            <kbd>{t`Enter`}</kbd> {t`sends`}, <kbd>{t`Shift`}</kbd>+<kbd>{t`Enter`}</kbd>{' '}
            {t`adds a line`}, <kbd>{t`Esc`}</kbd> {t`stops an answer`}, <kbd>/</kbd>{' '}
            {t`lists commands`}
          </p>
        </div>
      </form>
    );
  }

  return {
    View: Composer,
    focus: () => field.current?.focus(),
    /** Shows what was typed for this chat before. */
    openChat(opened: string) {
      // What was told before the first chat opened concerns no chat.
      if (chat.value !== undefined) note.value = '';
      chat.value = opened;
      text.value = draftOf(opened);
    },
    /** Puts a message back for editing, before what is being typed. */
    takeBack(back: Pick<Unsent, 'text' | 'files'>) {
      write([back.text, text.value].filter(Boolean).join('\n'));
      files.putBack(back.files ?? []);
      field.current?.focus();
    },
    tell,
  };
}

/** Cells and formatted text come with a picture of themselves: the text is meant. */
const isFormattedText = (source: DataTransfer | null) =>
  ['text/plain', 'text/html'].every((type) => source?.types.includes(type));

type VoiceProps = {
  onRecorded(file: File): void;
  tell(problem: string): void;
};

/** Pressed once it records, pressed again it attaches what was said. */
function VoiceButton({ onRecorded, tell }: VoiceProps) {
  const recording = useSignal<Recording | undefined>(undefined);
  const isBusy = useSignal(false);
  const secs = useSignal(0);
  useEffect(() => () => recording.value?.cancel(), []);
  useEffect(() => {
    secs.value = 0;
    if (recording.value === undefined) return;
    const ticks = setInterval(() => {
      secs.value += 1;
    }, SECOND_MS);
    return () => clearInterval(ticks);
  }, [recording.value]);

  async function press() {
    isBusy.value = true;
    const running = recording.value;
    recording.value = undefined;
    try {
      if (running === undefined) {
        recording.value = await record();
        tell('');
      } else {
        const file = await running.finish();
        if (file !== undefined) onRecorded(file);
      }
    } catch (error) {
      tell(t`Nothing was recorded: ${reasonOf(error)}`);
    }
    isBusy.value = false;
  }

  const isRecording = recording.value !== undefined;
  return (
    <IconButton
      icon={isRecording ? 'done' : 'microphone'}
      label={isRecording ? t`End the recording (${secs.value} s)` : t`Record a voice message`}
      class={isRecording ? 'recording' : ''}
      pressed={isRecording}
      disabled={isBusy.value}
      onClick={press}
    />
  );
}
