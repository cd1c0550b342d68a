// The commands that begin with what is typed behind a slash. The arrow keys choose, Tab or Enter takes,
// Escape closes.

import { computed, type ReadonlySignal, signal } from '@preact/signals';
import { t } from '/texts.js';
import type { CommandFacts } from '../../../features/conversations/rules/chat-views.ts';
import type { Api } from './parts.tsx';

const TYPED = /^\/([\p{L}\d_-]*)$/u;
const MAX_SHOWN = 8;

type Command = CommandFacts['commands'][number];

type Completion = {
  readonly found: ReadonlySignal<readonly Command[]>;
  readonly chosen: ReadonlySignal<number>;
  typed(text: string): void;
  take(command: Command): void;
  /** Returns whether the key was for the list. */
  key(event: KeyboardEvent): boolean;
};

/** `onTake` gets the command with its slash. */
export function createCompletion(
  api: Pick<Api, 'getJson'>,
  onTake: (text: string) => void,
): Completion {
  const commands = signal<readonly Command[]>([]);
  const text = signal('');
  const chosen = signal(0);
  let isAsked = false;

  const found = computed(() => {
    const begun = TYPED.exec(text.value)?.[1]?.toLowerCase();
    if (begun === undefined) return [];
    const all = commands.value.filter(({ name }) => name.startsWith(begun));
    // What is typed in full is sent by Enter.
    return all.some(({ name }) => name === begun) ? [] : all.slice(0, MAX_SHOWN);
  });

  async function load() {
    if (isAsked) return;
    isAsked = true;
    try {
      const { commands: all } = (await api.getJson('/api/v1/commands')) as CommandFacts;
      commands.value = all;
    } catch {
      isAsked = false;
    }
  }

  function take({ name, usage }: Command) {
    text.value = '';
    onTake(usage === undefined ? `/${name}` : `/${name} `);
  }

  return {
    found,
    chosen,
    take,
    typed(now: string) {
      text.value = now;
      chosen.value = 0;
      if (now.startsWith('/')) void load();
    },
    key(event: KeyboardEvent) {
      const list = found.value;
      const command = list[chosen.value];
      if (command === undefined || event.isComposing || event.shiftKey) return false;
      if (event.key === 'ArrowDown') chosen.value = (chosen.value + 1) % list.length;
      else if (event.key === 'ArrowUp')
        chosen.value = (chosen.value + list.length - 1) % list.length;
      else if (event.key === 'Tab' || event.key === 'Enter') take(command);
      else if (event.key === 'Escape') text.value = '';
      else return false;
      event.preventDefault();
      event.stopPropagation();
      return true;
    },
  };
}

export const COMPLETIONS = 'completions';
export const optionId = (index: number) => `completion-${index}`;

export function CompletionList({ completion }: { readonly completion: Completion }) {
  const found = completion.found.value;
  return (
    <div
      id={COMPLETIONS}
      class="completions"
      role="listbox"
      aria-label={t`Commands`}
      hidden={found.length === 0}
    >
      {found.map((command, index) => (
        // The keys work in the message field.
        <div
          key={command.name}
          id={optionId(index)}
          role="option"
          tabIndex={-1}
          aria-selected={index === completion.chosen.value}
          onPointerDown={(event) => {
            event.preventDefault();
            completion.take(command);
          }}
        >
          <code>/{command.name}</code>
          <span class="soft">{command.summary}</span>
        </div>
      ))}
    </div>
  );
}
