// Ctrl+K: jump to a chat, a page or a command by a few letters.

import { computed, signal } from '@preact/signals';
import { render } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { CommandFacts } from '../../../features/conversations/rules/chat-views.ts';
import type { Chat } from './chat-list.tsx';
import type { Api } from './parts.tsx';

const MAX_SHOWN = 12;

type Place = {
  readonly key: string;
  readonly kind: string;
  readonly text: string;
  readonly detail?: string;
  go(): void;
};

type PaletteParts = {
  readonly api: Pick<Api, 'getJson'>;
  chats(): readonly Chat[];
  onNew(): void;
  /** With its slash. */
  onCommand(text: string): void;
};

export function createPalette(parts: PaletteParts) {
  const dialog = document.createElement('dialog');
  dialog.className = 'palette';
  dialog.setAttribute('aria-label', t`Jump to`);
  document.body.append(dialog);
  const isOpen = signal(false);
  const words = signal('');
  const chosen = signal(0);
  const places = signal<readonly Place[]>([]);
  const found = computed(() => {
    const wanted = words.value.toLowerCase().split(/\s+/);
    const holds = ({ text, detail = '' }: Place) => {
      const whole = `${text} ${detail}`.toLowerCase();
      return wanted.every((word) => whole.includes(word));
    };
    return places.value.filter(holds).slice(0, MAX_SHOWN);
  });

  async function open() {
    words.value = '';
    chosen.value = 0;
    places.value = [newChat(parts), ...pagesOf(), ...chatsOf(parts.chats())];
    isOpen.value = true;
    if (!dialog.open) dialog.showModal();
    const all = await parts.api.getJson('/api/v1/commands').catch(() => ({ commands: [] }));
    places.value = [...places.value, ...commandsOf(all as CommandFacts, parts)];
  }

  function take(place: Place | undefined) {
    dialog.close();
    place?.go();
  }

  dialog.addEventListener('close', () => {
    isOpen.value = false;
  });
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });

  function Palette() {
    const field = useRef<HTMLInputElement>(null);
    // Before the next key: what is typed at once belongs to the field.
    useLayoutEffect(() => field.current?.focus(), []);
    const list = found.value;
    const step = (by: number) => {
      if (list.length > 0) chosen.value = (chosen.value + by + list.length) % list.length;
    };
    return (
      <>
        <input
          ref={field}
          role="combobox"
          dir="auto"
          autocomplete="off"
          placeholder={t`Jump to a chat, a page or a command`}
          aria-label={t`Jump to a chat, a page or a command`}
          aria-expanded={list.length > 0}
          aria-controls="places"
          aria-activedescendant={list.length > 0 ? `place-${chosen.value}` : undefined}
          value={words.value}
          onInput={({ currentTarget }) => {
            words.value = currentTarget.value;
            chosen.value = 0;
          }}
          onKeyDown={(event) => {
            if (event.isComposing) return;
            if (event.key === 'ArrowDown') step(1);
            else if (event.key === 'ArrowUp') step(-1);
            else if (event.key === 'Enter') take(found.value[chosen.value]);
            else return;
            event.preventDefault();
          }}
        />
        <div id="places" class="places" role="listbox" aria-label={t`Places`}>
          {list.map((place, index) => (
            <div
              key={place.key}
              id={`place-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === chosen.value}
              onPointerDown={(event) => {
                event.preventDefault();
                take(place);
              }}
            >
              <span class="place-text">
                <bdi>{place.text}</bdi>
                {place.detail !== undefined && <span class="soft"> {place.detail}</span>}
              </span>
              <span class="soft">{place.kind}</span>
            </div>
          ))}
        </div>
        {list.length === 0 && <p class="soft">{t`Nothing was found.`}</p>}
      </>
    );
  }

  render(<Opened />, dialog);
  function Opened() {
    return isOpen.value ? <Palette /> : null;
  }
  return {
    toggle() {
      if (dialog.open) dialog.close();
      else void open();
    },
  };
}

const newChat = ({ onNew }: PaletteParts): Place => ({
  ...{ key: 'new', kind: t`chat`, text: t`New chat` },
  go: onNew,
});

const goTo = (address: string) => () => {
  location.hash = address;
};

const pagesOf = (): readonly Place[] =>
  [...document.querySelectorAll<HTMLAnchorElement>('#pages a')].map((link) => ({
    ...{ key: link.hash, kind: t`page`, text: link.textContent?.trim() ?? '' },
    go: goTo(link.hash),
  }));

const chatsOf = (chats: readonly Chat[]): readonly Place[] =>
  chats.map(({ chat, title }) => ({
    ...{ key: `chat/${chat}`, kind: t`chat`, text: title === '' ? t`Untitled` : title },
    go: goTo(`#${chat}`),
  }));

const commandsOf = ({ commands }: CommandFacts, { onCommand }: PaletteParts): readonly Place[] =>
  commands.map(({ name, summary }) => ({
    ...{ key: `command/${name}`, kind: t`command`, text: `/${name}`, detail: summary },
    go: () => onCommand(`/${name}`),
  }));
