// Operations, log: its newest 100,000 lines, filtered here, and those that are added. A line is parsed
// when it is drawn; filtering takes turns with the rest of the page.

import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { LogPart } from '../../../features/health/rules/views.ts';
import { followStream } from '../connection.ts';
import { Options } from '../controls.tsx';
import { LineWindow } from './line-window.tsx';
import type { PageParts, ViewProps } from './parts.tsx';

const LOGS = '/api/v1/logs/events';
const MAX_LINES = 100_000;
/** Above it the oldest are dropped. */
const SLACK_LINES = 10_000;
/** Filtered at once: a few milliseconds. */
const SLICE = 5_000;
const MAX_ROW_CHARS = 400;
/** Made once: making one takes longer than the rest of a row. */
const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'medium' });
const LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error'];
const LEVEL = /^\{"level":"(\w+)"/;

type Filter = { readonly from: number; readonly words: string };
type Shown = { readonly lines: readonly string[]; readonly before: number; readonly all: number };

const rank = (line: string) => {
  const found = LEVELS.indexOf(LEVEL.exec(line)?.[1] ?? '');
  return found < 0 ? LEVELS.length : found;
};

function passes({ from, words }: Filter): (line: string) => boolean {
  const pattern = new RegExp(words.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'i');
  return (line) => rank(line) >= from && (words === '' || pattern.test(line));
}

/** What was read, and what of it passes the filter. */
class LogLines {
  #all: string[] = [];
  /** The same array while all lines pass: a copy of each part would be one too many. */
  #lines = this.#all;
  #before = 0;
  #filter: Filter = { from: 0, words: '' };
  #filtering = 0;
  readonly #shown: Signal<Shown>;

  constructor(shown: Signal<Shown>) {
    this.#shown = shown;
  }

  #show() {
    this.#shown.value = { lines: this.#lines, before: this.#before, all: this.#all.length };
  }

  clear() {
    this.#all = [];
    this.#lines = this.#all;
    this.#show();
  }

  add({ place, lines }: LogPart) {
    const passed = lines.filter(passes(this.#filter));
    const isWhole = this.#lines === this.#all && passed.length === lines.length;
    if (place === 'older') {
      this.#all = [...lines, ...this.#all];
      this.#lines = isWhole ? this.#all : [...passed, ...this.#lines];
      this.#before += passed.length;
    } else {
      this.#all = [...this.#all, ...lines];
      this.#lines = isWhole ? this.#all : [...this.#lines, ...passed];
    }
    if (this.#all.length > MAX_LINES + SLACK_LINES) {
      this.#all = this.#all.slice(-MAX_LINES);
      void this.filter(this.#filter);
    }
    this.#show();
  }

  async filter(filter: Filter): Promise<void> {
    this.#filter = filter;
    this.#filtering += 1;
    const own = this.#filtering;
    const all = this.#all;
    const isPassed = passes(filter);
    const found: string[] = [];
    for (let at = 0; at < all.length; at += SLICE) {
      for (const line of all.slice(at, at + SLICE)) if (isPassed(line)) found.push(line);
      await new Promise((resolve) => setTimeout(resolve));
      if (own !== this.#filtering) return;
    }
    // Lines that came meanwhile are filtered once more.
    if (all !== this.#all) return this.filter(filter);
    this.#lines = found.length === all.length ? all : found;
    this.#show();
  }
}

function useLog({ api }: PageParts, lines: LogLines): Signal<boolean> {
  const isLost = useSignal(false);
  useEffect(() => {
    const ended = new AbortController();
    let isNew = true;
    void followStream((opened) => api.openStream(LOGS, opened), {
      signal: ended.signal,
      onConnected: () => {
        isNew = true;
        isLost.value = false;
      },
      onEvent: (event) => {
        if (isNew) lines.clear();
        isNew = false;
        lines.add(event as LogPart);
      },
      onLost: () => {
        isLost.value = true;
      },
    });
    return () => ended.abort();
  }, [api, lines, isLost]);
  return isLost;
}

export function Log({ parts }: ViewProps) {
  const shown = useSignal<Shown>({ lines: [], before: 0, all: 0 });
  const lines = useRef<LogLines>(undefined);
  lines.current ??= new LogLines(shown);
  const log = lines.current;
  const isLost = useLog(parts, log);
  const filter = useSignal<Filter>({ from: 0, words: '' });
  const opened = useSignal<string | undefined>(undefined);
  const set = (change: Partial<Filter>) => {
    filter.value = { ...filter.value, ...change };
    void log.filter(filter.value);
  };
  const { lines: passed, before, all } = shown.value;
  return (
    <section class="log" aria-label={t`Log`}>
      <p class="view-problem" role="alert" hidden={!isLost.value}>
        {t`Connection lost, reconnecting…`}
      </p>
      <div class="log-filter">
        <label class="field-label">
          {t`From level`}
          <select onChange={({ currentTarget }) => set({ from: Number(currentTarget.value) })}>
            <Options of={LEVELS.map((level, index) => [index, level])} />
          </select>
        </label>
        <label class="field-label">
          {t`Contains`}
          <input
            type="search"
            autocomplete="off"
            onInput={({ currentTarget }) => set({ words: currentTarget.value })}
          />
        </label>
      </div>
      <p class="soft" role="status">
        {t`${passed.length.toLocaleString()} of ${all.toLocaleString()} lines`}
      </p>
      <LineWindow
        label={t`Lines of the log`}
        count={passed.length}
        before={before}
        followsEnd
        row={(index) => (
          <LogRow
            line={passed[index] ?? ''}
            open={(line) => {
              opened.value = line;
            }}
          />
        )}
      />
      {opened.value !== undefined && (
        <section class="card" aria-label={t`The chosen line`}>
          <pre dir="auto">{wholeText(opened.value)}</pre>
        </section>
      )}
    </section>
  );
}

function parsed(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

const wholeText = (line: string) => {
  const fields = parsed(line);
  return fields === undefined ? line : JSON.stringify(fields, undefined, 2);
};

function timeText(time: unknown): string {
  const date = new Date(typeof time === 'string' ? time : Number.NaN);
  return Number.isNaN(date.getTime()) ? '' : TIME.format(date);
}

type RowProps = { readonly line: string; readonly open: (line: string) => void };

function LogRow({ line, open }: RowProps) {
  const { level = '', time, msg, ...fields } = parsed(line) ?? { msg: line };
  const more = Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
  const isBad = level === 'error' || level === 'warn';
  return (
    <button type="button" class="log-row" onClick={() => open(line)}>
      <span class="log-head">
        <span class="soft">{timeText(time)}</span>{' '}
        <span class={isBad ? 'problem' : 'soft'}>{String(level)}</span>{' '}
        <bdi>{String(msg).slice(0, MAX_ROW_CHARS)}</bdi>
      </span>
      <span class="log-head soft">
        <bdi>{more.slice(0, MAX_ROW_CHARS)}</bdi>
      </span>
    </button>
  );
}
