// How the answers of this chat are made: its model, thinking and mode, and how often the owner is asked
// for approvals. Folded below the message field; the button says which model answers.

import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type {
  ChangedChatSettings,
  ChatSettings,
  ModelNames,
} from '../../../features/conversations/rules/chat-views.ts';
import { useAct, useRead } from '../console/parts.tsx';
import { Options, Problem, set } from '../controls.tsx';
import { type Api, Icon } from './parts.tsx';

type Props = {
  readonly api: Pick<Api, 'getJson' | 'postJson'>;
  readonly chat: string;
  readonly settings: Signal<ChatSettings | undefined>;
};

const THINKING = [
  [0, t`Off`],
  [4000, t`Short (4,000 tokens)`],
  [10_000, t`Normal (10,000 tokens)`],
  [32_000, t`Long (32,000 tokens)`],
] as const;
const MODES: Readonly<Record<ChatSettings['defaultMode'], string>> = {
  inline: t`One model`,
  delegated: t`Delegated`,
  trio: t`Trio`,
  supervisor: t`Supervisor`,
};
const POLICIES = [
  ['auto', t`As configured`],
  ['strict', t`Strict: asks most often`],
  ['normal', t`Normal`],
  ['open', t`Open: asks least often`],
] as const;

const settingsPath = (chat: string) => `/api/v1/chats/${encodeURIComponent(chat)}/settings`;

export function ChatOptions({ api, chat, settings }: Props) {
  const isOpen = useSignal(false);
  const place = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);

  useEffect(() => {
    isOpen.value = false;
    api.getJson(settingsPath(chat)).then(
      (found) => {
        settings.value = found as ChatSettings;
      },
      () => undefined,
    );
  }, [chat]);

  useEffect(() => {
    if (!isOpen.value) return;
    const over = new AbortController();
    const close = (event: Event) => {
      if (event.target instanceof Node && !place.current?.contains(event.target))
        isOpen.value = false;
    };
    document.addEventListener('pointerdown', close, over);
    document.addEventListener('focusin', close, over);
    document.addEventListener(
      'keydown',
      (event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        isOpen.value = false;
        opener.current?.focus();
      },
      { capture: true, signal: over.signal },
    );
    return () => over.abort();
  }, [isOpen.value]);

  const now = settings.value;
  if (now === undefined) return null;
  const model = now.model ?? now.defaultModel;
  const thinks = (now.thinking ?? now.defaultThinking) > 0;
  const extra = [
    ...(thinks ? [t`thinking`] : []),
    ...(now.mode === undefined || now.mode === 'inline' ? [] : [MODES[now.mode]]),
  ];
  return (
    <div class="chat-options" ref={place}>
      <button
        type="button"
        class="chat-options-button"
        ref={opener}
        aria-expanded={isOpen.value}
        title={t`Model, thinking, mode and approvals`}
        onClick={set(isOpen, !isOpen.value)}
      >
        <Icon name="options" />
        <bdi class="chat-model">{model}</bdi>
        {extra.length > 0 && <span class="soft">{extra.join(', ')}</span>}
      </button>
      {isOpen.value && <OptionsForm api={api} chat={chat} settings={settings} now={now} />}
    </div>
  );
}

function OptionsForm({ api, chat, settings, now }: Props & { readonly now: ChatSettings }) {
  const { found: models } = useRead<ModelNames>({ api }, '/api/v1/models');
  const { problem, act } = useAct();
  const first = useRef<HTMLInputElement>(null);

  useLayoutEffect(() => first.current?.focus(), []);

  const change = (changed: Partial<ChangedChatSettings>) =>
    act(async () => {
      settings.value = (await api.postJson(settingsPath(chat), changed)) as ChatSettings;
    });

  const setModel = (typed: string) => change({ model: typed.trim() || 'default' });
  const thinking = now.thinking ?? 'default';
  const steps = THINKING.some(([tokens]) => tokens === thinking)
    ? THINKING
    : thinking === 'default'
      ? THINKING
      : [...THINKING, [thinking, t`${thinking} tokens`] as const];
  return (
    <fieldset class="chat-options-panel">
      <legend class="unseen">{t`How answers in this chat are made`}</legend>
      <label>
        <span>{t`Model`}</span>
        <input
          ref={first}
          list="model-names"
          dir="ltr"
          autocomplete="off"
          spellcheck={false}
          placeholder={now.defaultModel}
          defaultValue={now.model ?? ''}
          onFocus={({ currentTarget }) => currentTarget.select()}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return;
            event.preventDefault();
            void setModel(event.currentTarget.value);
          }}
          onChange={({ currentTarget }) => setModel(currentTarget.value)}
        />
        <datalist id="model-names">
          {models.value?.models.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </label>
      <label>
        <span>{t`Thinking`}</span>
        <select
          value={String(thinking)}
          onChange={({ currentTarget: { value } }) =>
            change({ thinking: value === 'default' ? value : Number(value) })
          }
        >
          <option value="default">
            {now.defaultThinking === 0
              ? t`Default: off`
              : t`Default: ${now.defaultThinking.toLocaleString()} tokens`}
          </option>
          <Options of={steps} />
        </select>
      </label>
      <label>
        <span>{t`Mode`}</span>
        <select
          value={now.mode ?? 'default'}
          onChange={({ currentTarget: { value } }) =>
            change({ mode: value as Exclude<ChangedChatSettings['mode'], undefined> })
          }
        >
          <option value="default">{t`Default: ${MODES[now.defaultMode]}`}</option>
          {now.modes.map(({ name, problems }) => (
            <option key={name} value={name} disabled={problems.length > 0 && name !== now.mode}>
              {problems.length > 0 ? t`${MODES[name]} (not set up)` : MODES[name]}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>{t`Approvals`}</span>
        <select
          value={now.approvals ?? 'auto'}
          onChange={({ currentTarget: { value } }) =>
            change({ approvals: value as Exclude<ChangedChatSettings['approvals'], undefined> })
          }
        >
          <Options of={POLICIES} />
        </select>
      </label>
      <p class="soft">
        {t`From the next message on. Approvals hold in all your chats, the rest in this one.`}
      </p>
      <Problem text={problem.value} />
    </fieldset>
  );
}
