// What the parts of the setup share: texts with commands and links in them, a picture to scan, a code to
// type, and the stream of events behind a button.

import type { ComponentChildren } from 'preact';
import { t } from '/texts.js';
import { Button } from '../controls.tsx';
import { readEvents } from '../event-reader.ts';
import { type PageParts, Tabs } from './parts.tsx';

/** The gateway sends a heartbeat every 15 s. */
const SILENCE_MS = 40_000;
const CODE_LENGTH = 8;
const PARTS = /(`[^`]+`|https?:\/\/[^\s<>"]+)/;

export function SetupTabs({ shown }: { readonly shown: string }) {
  const links = [
    ['#/setup', t`Setup`],
    ['#/configuration', t`Configuration`],
  ] as const;
  return <Tabs label={t`Setup`} shown={shown} links={links} />;
}

/** Parts between back quotes become code, addresses links. */
export function Words({ text }: { readonly text: string }) {
  return (
    <>
      {text.split(PARTS).map((part) => {
        if (part.startsWith('`')) return <code key={part}>{part.slice(1, -1)}</code>;
        if (!/^https?:/.test(part)) return part;
        return (
          <a key={part} href={part} target="_blank" rel="noopener noreferrer">
            {part}
          </a>
        );
      })}
    </>
  );
}

export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

export function QrCode({ image }: { readonly image: string }) {
  return (
    <img
      class="login-qr"
      src={image}
      alt={t`QR code to scan with the phone`}
      width={288}
      height={288}
    />
  );
}

export function Stage({ children }: { readonly children: ComponentChildren }) {
  return <div class="login-stage">{children}</div>;
}

export const Spinner = () => <span class="spinner" />;

/** Eight characters in two groups, as the phone's field shows them. */
function TypedCode({ code }: { readonly code: string }) {
  const half = CODE_LENGTH / 2;
  const shown = code.length === CODE_LENGTH ? `${code.slice(0, half)}-${code.slice(half)}` : code;
  return (
    <>
      <p>
        {t`On the phone, choose `}
        <b>{t`Link with phone number instead`}</b>
        {t` and type:`}
      </p>
      <div class="login-typed-row">
        <output class="login-typed" aria-label={[...code].join(' ')}>
          {shown}
        </output>
        <Button text={t`Copy`} onClick={() => navigator.clipboard?.writeText(code)} />
      </div>
    </>
  );
}

type PhoneLoginProps = {
  /** The program on the phone. */
  readonly label: string;
  readonly image: string | undefined;
  readonly code: string | undefined;
  readonly progress: string;
  readonly children?: ComponentChildren;
};

/** How a phone links an account: a picture to scan or a code to type. */
export function PhoneLogin({ label, image, code, progress, children }: PhoneLoginProps) {
  return (
    <div class="login">
      <Stage>{image === undefined ? <Spinner /> : <QrCode image={image} />}</Stage>
      <ol class="login-steps">
        <li>{t`Open ${label} on the phone whose account you link.`}</li>
        <li>
          {t`In its settings (Android: in its menu), choose `}
          <b>{t`Linked devices › Link a device`}</b>.
        </li>
        <li>{t`Point the phone at this code.`}</li>
      </ol>
      {children}
      <div class="login-code" aria-live="polite">
        {code !== undefined && <TypedCode code={code} />}
      </div>
      <p class="login-progress" role="status">
        {progress}
      </p>
    </div>
  );
}

export type Stream = { readonly path: string; readonly body: object; readonly signal: AbortSignal };

/** The events of a request. It ends with the signal, or when nothing is heard of the gateway. */
export async function* eventsOf<Event>(
  { api }: PageParts,
  { path, body, signal }: Stream,
): AsyncGenerator<Event, void, void> {
  const silence = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE_MS);
  };
  try {
    const stream = await api.openPost(path, body, AbortSignal.any([signal, silence.signal]));
    alive();
    for await (const event of readEvents(stream)) {
      alive();
      if (event !== undefined) yield event as Event;
    }
  } finally {
    clearTimeout(timer);
  }
}
