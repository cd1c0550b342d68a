// Quiet hours as a week with its hours: set by pressing the first and the last hour, or in fields; the
// same each day, or by weekday.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import { hasDay, readQuietHours } from '../../../lib/time/quiet-hours.ts';
import { WEEKDAYS } from '../../../lib/time/zone-time.ts';
import { Button, Form, Options, Problem } from '../controls.tsx';
import { useAct } from './parts.tsx';

const DAYS = 7;
const DAY_HOURS = 24;
const DAY_MINUTES = 1440;
const HOUR_MARKS = [0, 6, 12, 18, 24];
/** A Monday. */
const MONDAY = Date.UTC(2024, 0, 1);
const DAY_MS = 86_400_000;

type QuietHoursProps = {
  /** `22:00-07:00`, `Sun-Thu 22:00-07:00, Fri-Sat 23:30-09:00`; empty: none. */
  readonly hours: string;
  readonly timeZone: string;
  /** About where the setting is. */
  readonly note: ComponentChildren;
  readonly save: (hours: string) => Promise<void>;
};

/** One line of the form: the days on which the hours begin, places in the week, and the clock. */
type Line = {
  readonly first: number;
  readonly last: number;
  readonly from: string;
  readonly to: string;
};

const EVERY_DAY: Line = { first: 0, last: DAYS - 1, from: '', to: '' };

const linesOf = (hours: string): readonly Line[] =>
  hours === ''
    ? [EVERY_DAY]
    : (readQuietHours(hours) ?? []).map(({ first, last, from, to }) => ({
        ...{ first, last, from: clockText(from), to: clockText(to) },
      }));

/** As the configuration has them. */
const textOf = (lines: readonly Line[]): string =>
  lines
    .map(({ first, last, from, to }) => {
      const days = first === last ? WEEKDAYS[first] : `${WEEKDAYS[first]}-${WEEKDAYS[last]}`;
      return `${first === 0 && last === DAYS - 1 ? '' : `${days} `}${from}-${to}`;
    })
    .join(', ');

const dayNames = (weekday: 'short' | 'long'): readonly string[] => {
  const named = new Intl.DateTimeFormat(undefined, { weekday, timeZone: 'UTC' });
  return WEEKDAYS.map((_, day) => named.format(MONDAY + day * DAY_MS));
};

export function QuietHours({ hours, timeZone, note, save }: QuietHoursProps) {
  const lines = useSignal(linesOf(hours));
  const drawn = useRef(hours);
  /** The line whose last hour is pressed next. */
  const begun = useSignal<number | undefined>(undefined);
  const { isBusy, problem, act } = useAct();
  const keep = (next: string) => act(() => save(next));
  // What was changed meanwhile is drawn, but not over what is being changed here.
  useLayoutEffect(() => {
    const isChanged = textOf(lines.value) !== textOf(linesOf(drawn.current));
    drawn.current = hours;
    if (!isChanged) draw(hours);
  }, [hours]);

  function draw(now: string) {
    lines.value = linesOf(now);
    begun.value = undefined;
  }

  async function clear() {
    if (await keep('')) draw('');
  }

  const change = (index: number, changed: Partial<Line>) => {
    lines.value = lines.value.map((line, at) => (at === index ? { ...line, ...changed } : line));
  };

  /** Changes the hours of the line that has the day. */
  function press(day: number, hour: number) {
    const to = clockText((hour + 1) * 60);
    if (begun.value !== undefined) {
      change(begun.value, { to });
      begun.value = undefined;
      return;
    }
    const index = Math.max(
      0,
      lines.value.findIndex((line) => hasDay(line, day)),
    );
    change(index, { from: clockText(hour * 60), to });
    begun.value = index;
  }

  const next = textOf(lines.value);
  const isWhole = lines.value.every(({ from, to }) => from !== '' && to !== '' && from !== to);
  return (
    <section class="card" aria-label={t`Quiet hours`}>
      <h2>
        {t`Quiet hours`}
        {hours === '' && <span class="badge">{t`none`}</span>}
      </h2>
      <p class="soft">
        {t`In these hours the agent messages nobody first; its messages come together at the end, by the clock of each person (here: ${timeZone}). People set their own with /quiet.`}
      </p>
      {note}
      <Week lines={lines.value} press={press} />
      <p class="soft" role="status">
        {begun.value === undefined
          ? t`Press the first quiet hour, then the last one. Hours over midnight belong to the day on which they begin.`
          : t`Now press the last quiet hour.`}
      </p>
      <Form submit={() => isWhole && keep(next)}>
        {lines.value.map((line, index) => (
          // Lines have no name but their place.
          <LineFields
            key={index}
            line={line}
            change={(changed) => change(index, changed)}
            remove={
              lines.value.length < 2
                ? undefined
                : () => {
                    begun.value = undefined;
                    lines.value = lines.value.filter((_, at) => at !== index);
                  }
            }
          />
        ))}
        <div class="actions">
          <Button
            text={t`Save`}
            look="primary"
            type="submit"
            disabled={isBusy.value || !isWhole || next === hours}
          />
          <Button
            text={t`Other hours on some days`}
            onClick={() => {
              lines.value = [...lines.value, { ...EVERY_DAY, first: 4, last: 5 }];
            }}
          />
          {hours !== '' && (
            <Button text={t`No quiet hours`} disabled={isBusy.value} onClick={clear} />
          )}
        </div>
      </Form>
      <Problem text={problem.value} />
    </section>
  );
}

type LineFieldsProps = {
  readonly line: Line;
  readonly change: (changed: Partial<Line>) => void;
  /** Undefined for the only one. */
  readonly remove: (() => void) | undefined;
};

function LineFields({ line, change, remove }: LineFieldsProps) {
  const days = dayNames('long');
  const day = (label: string, key: 'first' | 'last') => (
    <label>
      {label}
      <select
        value={line[key]}
        onChange={({ currentTarget }) => change({ [key]: Number(currentTarget.value) })}
      >
        <Options of={days.map((name, value) => [value, name])} />
      </select>
    </label>
  );
  const clock = (label: string, key: 'from' | 'to') => (
    <label>
      {label}
      <input
        type="time"
        value={line[key]}
        onInput={({ currentTarget }) => change({ [key]: currentTarget.value })}
      />
    </label>
  );
  return (
    <div class="person-form quiet-line">
      {day(t`First day`, 'first')}
      {day(t`Last day`, 'last')}
      {clock(t`From`, 'from')}
      {clock(t`To`, 'to')}
      {remove !== undefined && (
        <div class="actions">
          <Button text={t`Remove these hours`} onClick={remove} />
        </div>
      )}
    </div>
  );
}

type WeekProps = {
  readonly lines: readonly Line[];
  readonly press: (day: number, hour: number) => void;
};

/** The quiet minutes of a day. */
function spansOn(lines: readonly Line[], day: number): readonly (readonly [number, number])[] {
  return lines.flatMap((line) => {
    const from = minutesOf(line.from);
    const to = minutesOf(line.to);
    if (from === undefined || to === undefined || from === to) return [];
    const begins = hasDay(line, day);
    if (from < to) return begins ? [[from, to] as const] : [];
    const ends = hasDay(line, (day + DAYS - 1) % DAYS);
    return [...(ends ? [[0, to] as const] : []), ...(begins ? [[from, DAY_MINUTES] as const] : [])];
  });
}

/** For the pointer; the fields are for the keyboard. */
function Week({ lines, press }: WeekProps) {
  const days = dayNames('short');
  return (
    <div class="week" aria-hidden="true">
      <ul class="week-days">
        {days.map((day) => (
          <li key={day}>{day}</li>
        ))}
      </ul>
      <svg
        viewBox={`0 0 ${DAY_MINUTES} ${DAYS}`}
        preserveAspectRatio="none"
        aria-hidden="true"
        onClick={({ currentTarget, clientX, clientY }) => {
          const { left, top, width, height } = currentTarget.getBoundingClientRect();
          const place = (share: number, places: number) =>
            Math.min(places - 1, Math.max(0, Math.floor(share * places)));
          press(place((clientY - top) / height, DAYS), place((clientX - left) / width, DAY_HOURS));
        }}
      >
        {days.map((day, row) => (
          <g key={day}>
            <rect class="awake" x={0} y={row + 0.08} width={DAY_MINUTES} height={0.84} />
            {spansOn(lines, row).map(([begin, end]) => (
              <rect
                key={begin}
                class="quiet"
                x={begin}
                y={row + 0.08}
                width={end - begin}
                height={0.84}
              />
            ))}
          </g>
        ))}
        {Array.from({ length: DAY_HOURS - 1 }, (_, hour) => (
          <rect key={hour} class="hour" x={(hour + 1) * 60 - 1} y={0} width={2} height={DAYS} />
        ))}
      </svg>
      <div class="ends week-hours">
        {HOUR_MARKS.map((hour) => (
          <span key={hour}>{hour}</span>
        ))}
      </div>
    </div>
  );
}

const clockText = (minutes: number) =>
  [Math.floor(minutes / 60) % DAY_HOURS, minutes % 60]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');

function minutesOf(clock: string): number | undefined {
  const match = /^(\d\d):(\d\d)$/.exec(clock);
  return match === null ? undefined : Number(match[1]) * 60 + Number(match[2]);
}
