// What the views share: the frame of a page, the live state behind it, moments, and the report of what
// was done.

import { type ReadonlySignal, type Signal, signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import { RefusedError, type WholeApi } from '../api.ts';
import type { Markdown as Loaded } from '../chat/markdown.tsx';
import { followStream, lostText } from '../connection.ts';
import { Button, Problem, set } from '../controls.tsx';
import { loadOnUse } from '../new-version.ts';

/** Of the page around the console: the same login and the same care for connections. */
export type PageParts = {
  readonly api: WholeApi;
  /** How many people wait for a decision; shown in the navigation. */
  readonly waiting: Signal<number>;
};

export type ViewProps = { readonly parts: PageParts };

/** A connection restored within this time is not reported. */
const LOST_NOTICE_MS = 800;
const TICK_MS = 15_000;

export type Live<T> = {
  /** The last state that arrived; undefined before the first. */
  readonly value: T | undefined;
  /** Why there is no newer one. */
  readonly problem: string | undefined;
};

/** Follows a stream of the API while the component is shown. */
export function useLive<T>({ api }: PageParts, path: string): ReadonlySignal<Live<T>> {
  const live = useSignal<Live<T>>({ value: undefined, problem: undefined });
  useEffect(() => {
    const ended = new AbortController();
    let late: ReturnType<typeof setTimeout> | undefined;
    const set = (change: Partial<Live<T>>) => {
      clearTimeout(late);
      live.value = { ...live.value, ...change };
    };
    void followStream((opened) => api.openStream(path, opened), {
      signal: ended.signal,
      onConnected: () => set({ problem: undefined }),
      onEvent: (event) => set({ value: event as T, problem: undefined }),
      onLost(problem) {
        clearTimeout(late);
        late = setTimeout(() => set({ problem: lostText(problem) }), LOST_NOTICE_MS);
      },
    });
    return () => {
      ended.abort();
      clearTimeout(late);
    };
  }, [api, live, path]);
  return live;
}

/**
 * Reads `path`, again when `version` changes, and when asked to. Undefined: not yet. An answer that is
 * overtaken by a later request is dropped.
 */
export function useRead<T>(
  { api }: { readonly api: Pick<WholeApi, 'getJson'> },
  path: string | undefined,
  version?: unknown,
) {
  const found = useSignal<T | undefined>(undefined);
  const problem = useSignal('');
  const requests = useRef(0);
  const read = async () => {
    if (path === undefined) return;
    requests.current += 1;
    const request = requests.current;
    const set = (value: T | undefined, why: string) => {
      if (request !== requests.current) return;
      found.value = value;
      problem.value = why;
    };
    await api.getJson(path).then(
      (value) => set(value as T, ''),
      (error) => set(found.value, problemText(error)),
    );
  };
  useEffect(() => {
    void read();
  }, [path, version]);
  return { found, problem, read };
}

/** Folded: what `path` answers is read when it is opened, and again when `version` changes. */
export function ReadWhenOpen<T>(props: {
  readonly parts: PageParts;
  readonly title: string;
  readonly path: string;
  readonly version?: unknown;
  readonly class?: string;
  readonly show: (found: T) => ComponentChildren;
}) {
  const { parts, title, path, version, show } = props;
  const isOpen = useSignal(false);
  const { found, problem } = useRead<T>(parts, isOpen.value ? path : undefined, version);
  return (
    <details
      class={props.class}
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open;
      }}
    >
      <summary>{title}</summary>
      <Problem text={problem.value} />
      {problem.value === '' && found.value === undefined && <p>{t`Loading…`}</p>}
      {found.value !== undefined && show(found.value)}
    </details>
  );
}

/** What a person does in a part of a view: one thing at a time, and what came of it. */
export function useAct() {
  const isBusy = useSignal(false);
  const said = useSignal('');
  const problem = useSignal('');
  /** Whether the work was done; `done` is said then. */
  async function act(work: () => Promise<unknown>, done = ''): Promise<boolean> {
    isBusy.value = true;
    said.value = '';
    problem.value = '';
    try {
      await work();
      if (done !== '') said.value = done;
    } catch (error) {
      problem.value = problemText(error);
    }
    isBusy.value = false;
    return problem.value === '';
  }
  return { isBusy, said, problem, act };
}

export const problemText = (error: unknown): string =>
  error instanceof RefusedError ? error.message : t`The gateway could not be reached. Try again.`;

const address = signal(location.hash);
window.addEventListener('hashchange', () => {
  address.value = location.hash;
});

/** What stands behind the name of the view in the address: `telegram:1` of `#/sessions/telegram:1`. */
export function namedInAddress(): string | undefined {
  const encoded = /^#\/[a-z]+\/(.+)$/.exec(address.value)?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** How long something took: "42 s", "3 min", "2 h 5 min". */
export function spanText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1) return t`${seconds} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 1 ? t`${minutes} min` : t`${hours} h ${minutes % 60} min`;
}

/** Millionths of the currency. */
export const moneyText = (micros: number, currency: string) =>
  `${(micros / 1_000_000).toFixed(4)} ${currency}`;

/** A view, its heading focused when it opens: so a screen reader says where one is. */
export function Page(props: {
  readonly title: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { title } = props;
  // Before the next key: what is pressed at once does not lose its place to the heading.
  useLayoutEffect(() => {
    document.title = `${title} – nanobot`;
    heading.current?.focus();
  }, [title]);
  return (
    <div class="view">
      <div class="view-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {props.actions}
      </div>
      {props.children}
    </div>
  );
}

/** Inside a list of facts. */
export const Fact = (props: { readonly name: string; readonly children: ComponentChildren }) => (
  <>
    <dt>{props.name}</dt>
    <dd>{props.children}</dd>
  </>
);

/** Drawn as in a chat: text nodes alone, no images, no links that run. */
export function Markdown({ text }: { readonly text: string }) {
  const Shown = useSignal<typeof Loaded | undefined>(undefined);
  useEffect(() => {
    void loadOnUse(() => import('../chat/markdown.tsx')).then((loaded) => {
      Shown.value = loaded.Markdown;
    });
  }, []);
  return <div class="body">{Shown.value !== undefined && <Shown.value text={text} />}</div>;
}

/** A button for what cannot be undone: it asks once more. */
export function AskedTwice(props: {
  /** On the button that asks. */
  readonly text: string;
  readonly question?: string;
  /** On the button that does it. */
  readonly sure: string;
  readonly onSure: () => unknown;
}) {
  const isAsked = useSignal<boolean | undefined>(undefined);
  /** The one that asks, or the one that keeps: what was pressed gives its focus to the other. */
  const other = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    if (isAsked.value !== undefined) other.current?.focus();
  }, [isAsked.value]);
  if (isAsked.value !== true)
    return <Button text={props.text} ref={other} onClick={set(isAsked, true)} />;
  return (
    <>
      {props.question !== undefined && <span>{props.question}</span>}
      <Button text={props.sure} look="danger" onClick={() => props.onSure()} />
      <Button text={t`Keep`} ref={other} onClick={set(isAsked, false)} />
    </>
  );
}

/** Links to the views of one entry of the navigation; `shown` is the address of this one. */
export function Tabs(props: {
  readonly label: string;
  readonly shown: string;
  readonly links: readonly (readonly [address: string, text: string])[];
}) {
  return (
    <nav class="tabs" aria-label={props.label}>
      {props.links.map(([address, text]) => (
        <a key={address} href={address} aria-current={address === props.shown ? 'page' : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}

/** The state with its loading and error states around it. */
export function Shown<T>(props: {
  readonly live: ReadonlySignal<Live<T>>;
  readonly show: (value: T) => ComponentChildren;
}) {
  const { value, problem } = props.live.value;
  return (
    <>
      <p class="view-problem" role="alert" hidden={problem === undefined}>
        {problem}
      </p>
      {value === undefined ? (
        <p class="loading" role="status" hidden={problem !== undefined}>
          {t`Loading…`}
        </p>
      ) : (
        props.show(value)
      )}
    </>
  );
}

/** Renewed while the page is open. */
const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now();
}, TICK_MS);

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

function distance(at: number): string {
  // Read for its changes; by it, what has just happened would lie ahead.
  const away = at - Math.max(now.value, Date.now());
  const [unit, ms] = UNITS.find(([, size]) => Math.abs(away) >= size) ?? ['second', 1000];
  const format = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
  return format.format(Math.round(away / ms), unit);
}

export function Moment({ at }: { readonly at: number }) {
  const date = new Date(at);
  const text = date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
  return (
    <time dateTime={date.toISOString()}>
      {text} <span class="soft">({distance(at)})</span>
    </time>
  );
}

/** For rows: how long ago, the moment itself as its title. */
export function Ago({ at }: { readonly at: number }) {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {distance(at)}
    </time>
  );
}
