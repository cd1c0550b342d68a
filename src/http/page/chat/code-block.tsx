// A block of code with its language, its colours and a copy button; a diagram above its source.

import { useSignal } from '@preact/signals';
import type { ComponentChildren, RefObject } from 'preact';
import { useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { Diagram } from './diagram.tsx';
import { IconButton } from './parts.tsx';
import { useWhenShown } from './when-shown.ts';

const SHOWN_MS = 1500;
/** Longer code stays without colours. */
const MAX_COLOURED_CHARS = 60_000;

type CodeBlockProps = {
  readonly text: string;
  readonly language: string | undefined;
  readonly isDiagram: boolean;
  readonly dir: 'ltr' | undefined;
};

export function CodeBlock({ text, language, isDiagram, dir }: CodeBlockProps) {
  const block = useRef<HTMLDivElement>(null);
  const code = useRef<HTMLElement>(null);
  const colours = useSignal<{ readonly of: string; readonly parts: ComponentChildren }>();
  const Drawing = useSignal<typeof Diagram>();
  useWhenShown(block, `${isDiagram} ${language} ${text}`, async () => {
    if (isDiagram) {
      Drawing.value = (await import('./diagram.tsx')).Diagram;
    } else if (language !== undefined && text.length <= MAX_COLOURED_CHARS) {
      const { coloured } = await import('./highlight.tsx');
      colours.value = { of: text, parts: coloured(text, language.toLowerCase()) };
    }
  });
  const source = (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
    <pre tabIndex={0}>
      <code ref={code}>{(colours.value?.of === text && colours.value.parts) || text}</code>
    </pre>
  );
  return (
    <div class="code-block" dir={dir} ref={block}>
      <div class="code-head">
        <span>{language ?? 'text'}</span>
        <CopyButton label={t`Copy code`} text={text} fallback={code} />
      </div>
      {isDiagram && Drawing.value !== undefined ? (
        <Drawing.value key={text} source={text} code={source} />
      ) : (
        source
      )}
    </div>
  );
}

type CopyProps = {
  readonly label: string;
  readonly text: string;
  /** Is selected where the browser forbids the clipboard. */
  readonly fallback: RefObject<Node | null>;
};

export function CopyButton({ label, text, fallback }: CopyProps) {
  const isCopied = useSignal(false);

  async function copyOrSelect() {
    try {
      // Browsers permit it only to pages on this machine or with TLS.
      await navigator.clipboard.writeText(text);
    } catch {
      if (fallback.current !== null) getSelection()?.selectAllChildren(fallback.current);
      return;
    }
    isCopied.value = true;
    setTimeout(() => {
      isCopied.value = false;
    }, SHOWN_MS);
  }

  return (
    <IconButton
      icon={isCopied.value ? 'done' : 'copy'}
      label={label}
      class="small"
      onClick={copyOrSelect}
    />
  );
}
