// The messages of a chat: the person's with the buttons that change or delete them, those that the
// gateway has not confirmed, the agent's, and the answer that grows. They only send requests; the
// gateway decides what a message says.

import { type ReadonlySignal, type Signal, useComputed, useSignal } from '@preact/signals';
import type { ComponentChildren, RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import { Button, bound } from '../controls.tsx';
import type { Unsent } from '../outbox.ts';
import { CopyButton } from './code-block.tsx';
import type { Amendment, Said } from './events.ts';
import { Files, type LoadFile } from './file-view.tsx';
import { GrowingMarkdown, Markdown } from './markdown.tsx';
import { IconButton } from './parts.tsx';
import { type ToolActivity, ToolSteps, type Turns } from './tool-steps.tsx';

const MAX_CHARS = 200_000;
const timeFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** What messages need of the chat around them. */
export type MessageContext = {
  readonly loadFile: LoadFile;
  readonly turns: Turns;
  readonly unsent: ReadonlySignal<readonly Pending[]>;
  /** Tokens of choices. */
  readonly pressed: ReadonlySignal<readonly string[]>;
  readonly again: ReadonlySignal<Again | undefined>;
  onPress(label: string, token: string): void;
  onChange(amends: Amendment, text: string): void;
  onTakeBack(unsent: Unsent): void;
};

export type Own = {
  readonly from: 'person';
  readonly id: string;
  readonly text: string;
  readonly at: number;
  readonly files: Said['files'];
  /** A press cannot be changed. */
  readonly isPress: boolean;
  readonly isEdited: boolean;
};

export type Answer = {
  readonly from: 'agent';
  readonly id: string;
  readonly text: string;
  /** Undefined for what was written when a turn was stopped. */
  readonly at: number | undefined;
  readonly files: Said['files'];
  readonly turn: string;
  readonly tools: readonly ToolActivity[];
  /** How its turn ended, so that half a sentence is not taken for the whole. */
  readonly activity: string;
  readonly choices: Said['choices'];
  /** A newer answer follows; this one can still be read. */
  readonly isReplaced: boolean;
};

/** The answer whose message can be answered again. */
export type Again = { readonly answer: string; readonly message: string };

/** A running turn. */
export type Live = {
  readonly text: string;
  readonly tools: readonly ToolActivity[];
  readonly hasDots: boolean;
  readonly activity: string;
};

/** Sent, and not yet confirmed, or refused. */
export type Pending = {
  readonly unsent: Unsent;
  /** Why it is not sent yet; undefined before the first attempt has failed. */
  readonly reason: string | undefined;
};

/** What is sent to change the message. */
const changeOf = ({ unsent }: MessageContext, id: string) =>
  unsent.value.find((one) => one.unsent.amends?.id === id);

type ContextProps = { readonly context: MessageContext };
type MessageProps = ContextProps & { readonly message: ReadonlySignal<Own | Answer> };

/** Drawn again when it changes itself, and not for the others. */
export function Message({ message, context }: MessageProps) {
  const shown = message.value;
  if (shown.from === 'person') return <PersonMessage message={shown} context={context} />;
  if (!shown.isReplaced) return <AgentMessage message={shown} context={context} />;
  return (
    <details class="replaced">
      <summary>
        {shown.tools.length > 0
          ? t`Replaced answer. What its tools did was not undone.`
          : t`Replaced answer`}
      </summary>
      <AgentMessage message={shown} context={context} />
    </details>
  );
}

function AgentMessage({ message, context }: ContextProps & { readonly message: Answer }) {
  const { id, text, at, files, turn, tools, activity, choices = [] } = message;
  const again = useComputed(() => {
    const found = context.again.value;
    if (found?.answer !== id) return undefined;
    return { ...found, asked: changeOf(context, found.message) };
  }).value;
  const body = useRef<HTMLDivElement>(null);
  return (
    <article class="message agent">
      <ToolSteps {...{ turn, tools, turns: context.turns }} />
      <Files files={files} load={context.loadFile} />
      <div class="body" ref={body}>
        <Markdown text={text} />
      </div>
      {activity !== '' && <p class="activity">{activity}</p>}
      {choices.length > 0 && <Choices choices={choices} context={context} />}
      {at !== undefined && (
        <Foot {...{ at, text, body }}>
          {again !== undefined && (
            <IconButton
              icon="retry"
              label={t`Answer again. What tools did is not undone.`}
              class="small"
              disabled={again.asked !== undefined && again.asked.unsent.refusal === undefined}
              onClick={() => context.onChange({ id: again.message, kind: 'again' }, '')}
            />
          )}
        </Foot>
      )}
      {again?.asked?.unsent.refusal !== undefined && (
        <p class="state problem" role="alert">
          {t`Not answered again: ${again.asked.unsent.refusal}`}
        </p>
      )}
    </article>
  );
}

type ChoicesProps = ContextProps & { readonly choices: NonNullable<Said['choices']> };

/** Once one of them was pressed, on this page or before a reload, all are disabled and it is marked. */
function Choices({ choices, context }: ChoicesProps) {
  const sent = context.unsent.value.flatMap(({ unsent }) =>
    unsent.refusal === undefined ? [unsent.press] : [],
  );
  const tokens = [...context.pressed.value, ...sent];
  const pressed = choices.find(({ token }) => tokens.includes(token));
  return (
    <fieldset class="choices" aria-label={t`Choices`}>
      {choices.map(({ label, token }) => (
        <button
          key={token}
          type="button"
          disabled={pressed !== undefined}
          aria-pressed={pressed && token === pressed.token}
          onClick={() => context.onPress(label, token)}
        >
          {label}
        </button>
      ))}
    </fieldset>
  );
}

/** Three moving dots while the agent thinks. */
export const Dots = () => (
  <span class="dots" role="img" aria-label="thinking">
    <i />
    <i />
    <i />
  </span>
);

type LiveProps = {
  readonly turn: string;
  readonly live: Signal<Live>;
  readonly turns: Turns;
};

/** A running turn as one growing message: the agent's activity, and the answer so far. */
export function LiveMessage({ turn, live, turns }: LiveProps) {
  const { text, tools, hasDots, activity } = live.value;
  return (
    <article class="message agent live">
      <ToolSteps {...{ turn, tools, turns }} />
      <div class="body">
        <GrowingMarkdown text={text} />
      </div>
      <p class="activity" hidden={!hasDots && activity === ''}>
        {hasDots && <Dots />}
        {activity}
      </p>
    </article>
  );
}

type PendingProps = ContextProps & { readonly message: Pending };

/** A message the gateway has not confirmed. One refused will not be sent. */
export function UnsentMessage({ message, context }: PendingProps) {
  const { unsent, reason } = message;
  const { refusal } = unsent;
  return (
    <article class={`message person unsent ${refusal === undefined ? '' : 'refused'}`}>
      <Files files={unsent.files} load={context.loadFile} />
      <div class="body" dir="auto">
        {unsent.text}
      </div>
      <p class="state">
        {refusal !== undefined && t`Not sent: ${refusal} `}
        {refusal === undefined &&
          (reason === undefined ? t`Sending…` : t`Not sent yet, trying again. ${reason}`)}
        {refusal !== undefined && (
          <IconButton
            icon="retry"
            label={t`Edit again`}
            class="small"
            onClick={() => context.onTakeBack(unsent)}
          />
        )}
      </p>
    </article>
  );
}

type FootProps = {
  readonly at: number;
  /** What is copied. */
  readonly text: string;
  readonly body: RefObject<HTMLElement | null>;
  readonly isHidden?: boolean;
  readonly isEdited?: boolean;
  readonly children?: ComponentChildren;
};

function Foot({ at, text, body, isHidden = false, isEdited, children }: FootProps) {
  const date = new Date(at);
  return (
    <footer hidden={isHidden}>
      {isEdited && <span class="edited">{t`edited`}</span>}
      <time dateTime={date.toISOString()} title={dayFormat.format(date)}>
        {timeFormat.format(date)}
      </time>
      <CopyButton label={t`Copy message`} text={text} fallback={body} />
      {children}
    </footer>
  );
}

/** In place of the foot: a text being changed, or the question before it is deleted. */
type Opened = { readonly kind: 'edit'; readonly draft: string } | { readonly kind: 'delete' };

function PersonMessage({ message, context }: ContextProps & { readonly message: Own }) {
  const { id, text, at, files, isPress, isEdited } = message;
  const change = useComputed(() => changeOf(context, id)).value;
  const body = useRef<HTMLDivElement>(null);
  const edit = useRef<HTMLButtonElement>(null);
  const remove = useRef<HTMLButtonElement>(null);
  const opened = useSignal<Opened | undefined>(undefined);
  /** Where the focus returns to. */
  const left = useRef<HTMLButtonElement | null>(null);
  const open = (now: Opened | undefined) => () => {
    left.current =
      now === undefined ? (opened.value?.kind === 'edit' ? edit : remove).current : null;
    opened.value = now;
  };
  // A refused text stays in the editor.
  useLayoutEffect(() => {
    if (change?.unsent.refusal !== undefined && change.unsent.amends?.kind === 'edited')
      opened.value = { kind: 'edit', draft: change.unsent.text };
  }, [change]);
  useLayoutEffect(() => {
    if (opened.value === undefined) left.current?.focus();
  }, [opened.value]);
  const request = (kind: Amendment['kind'], now: string) => {
    left.current = null;
    opened.value = undefined;
    context.onChange({ id, kind }, now);
  };
  const shown = opened.value;
  const state = stateOf(change);
  return (
    <article class="message person">
      <Files files={files} load={context.loadFile} />
      <div class="body" dir="auto" ref={body} hidden={shown?.kind === 'edit'}>
        {text}
      </div>
      <Foot {...{ at, text, body, isEdited }} isHidden={shown !== undefined}>
        {!isPress && text !== '' && (
          <IconButton
            ref={edit}
            icon="edit"
            label={t`Edit message`}
            class="small"
            onClick={open({ kind: 'edit', draft: text })}
          />
        )}
        {!isPress && (
          <IconButton
            ref={remove}
            icon="delete"
            label={t`Delete message`}
            class="small"
            onClick={open({ kind: 'delete' })}
          />
        )}
      </Foot>
      {shown?.kind === 'edit' && (
        <Editor
          draft={shown.draft}
          onLeave={open(undefined)}
          onSave={(now) => (now === text ? open(undefined)() : request('edited', now))}
        />
      )}
      {shown?.kind === 'delete' && (
        <DeleteQuestion onKeep={open(undefined)} onDelete={() => request('withdrawn', '')} />
      )}
      <p
        class={change?.unsent.refusal !== undefined ? 'state problem' : 'state'}
        role="status"
        hidden={state === '' || (shown !== undefined && change?.unsent.refusal === undefined)}
      >
        {state}
      </p>
    </article>
  );
}

function stateOf(change: Pending | undefined): string {
  const kind = change?.unsent.amends?.kind;
  if (change === undefined || kind === 'again') return '';
  const { reason = '', unsent } = change;
  if (unsent.refusal !== undefined)
    return `${kind === 'edited' ? t`Not changed` : t`Not deleted`}: ${unsent.refusal}`;
  return `${kind === 'edited' ? t`Saving` : t`Deleting`}… ${reason}`.trim();
}

/** Escape closes this form only. */
const onEscape = (leave: () => void) => (event: KeyboardEvent) => {
  if (event.key !== 'Escape' || event.isComposing) return;
  event.preventDefault();
  event.stopPropagation();
  leave();
};

type EditorProps = {
  readonly draft: string;
  onLeave(): void;
  onSave(now: string): void;
};

function Editor({ draft, onLeave, onSave }: EditorProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const text = useSignal(draft);
  useLayoutEffect(() => field.current?.focus(), []);
  // As high as its text, up to the limit of the style sheet.
  useLayoutEffect(() => {
    if (field.current === null) return;
    field.current.style.height = 'auto';
    field.current.style.height = `${field.current.scrollHeight}px`;
  }, [text.value]);
  function save(event: Event) {
    event.preventDefault();
    const now = text.value.trim();
    if (now === '') field.current?.focus();
    else onSave(now);
  }
  return (
    <form class="editor" onKeyDown={onEscape(onLeave)} onSubmit={save}>
      <textarea
        ref={field}
        rows={1}
        dir="auto"
        maxLength={MAX_CHARS}
        aria-label={t`New text of the message`}
        {...bound(text)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) save(event);
        }}
      />
      <div class="editor-buttons">
        <Button text={t`Cancel`} onClick={onLeave} />
        <Button text={t`Save`} look="primary" type="submit" />
      </div>
    </form>
  );
}

function DeleteQuestion({ onKeep, onDelete }: { onKeep(): void; onDelete(): void }) {
  const keep = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => keep.current?.focus(), []);
  return (
    <fieldset class="editor" aria-label={t`Delete this message?`} onKeyDown={onEscape(onKeep)}>
      <p>{t`Delete this message?`}</p>
      <div class="editor-buttons">
        <Button text={t`Keep`} ref={keep} onClick={onKeep} />
        <Button text={t`Delete`} look="danger" onClick={onDelete} />
      </div>
    </fieldset>
  );
}
