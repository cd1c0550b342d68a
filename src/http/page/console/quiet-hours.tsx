// Quiet hours as a week with its hours: set by pressing the first and the last hour, or in two fields.

import { useSignal } from '@preact/signals';
import { t } from '/texts.js';
import { problemText } from './parts.tsx';

const DAYS = 7;
const DAY_HOURS = 24;
const HOUR_MARKS = [0, 6, 12, 18, 24];
/** A Monday. */
const MONDAY = Date.UTC(2024, 0, 1);
const DAY_MS = 86_400_000;

type QuietHoursProps = {
  /** `22:00-07:00`; empty: none. */
  readonly hours: string;
  readonly timeZone: string;
  readonly save: (hours: string) => Promise<void>;
};

export function QuietHours({ hours, timeZone, save }: QuietHoursProps) {
  const [savedFrom = '', savedTo = ''] = hours.split('-');
  const from = useSignal(savedFrom);
  const to = useSignal(savedTo);
  const first = useSignal<number | undefined>(undefined);
  const isBusy = useSignal(false);
  const problem = useSignal('');

  async function keep(next: string) {
    isBusy.value = true;
    problem.value = '';
    try {
      await save(next);
    } catch (error) {
      problem.value = problemText(error);
    }
    isBusy.value = false;
  }

  function press(hour: number) {
    if (first.value === undefined) {
      first.value = hour;
      from.value = clockText(hour);
      to.value = clockText(hour + 1);
      return;
    }
    to.value = clockText(hour + 1);
    first.value = undefined;
  }

  const isChanged = from.value !== savedFrom || to.value !== savedTo;
  const isWhole = from.value !== '' && to.value !== '' && from.value !== to.value;
  return (
    <section class="card" aria-label={t`Quiet hours`}>
      <h2>
        {t`Quiet hours`}
        {hours === '' && <span class="badge">{t`none`}</span>}
      </h2>
      <p class="soft">
        {t`In these hours the agent messages nobody first; its messages come together at the end, by the clock of each person (here: ${timeZone}). People set their own with /quiet.`}
      </p>
      <Week from={minutesOf(from.value)} to={minutesOf(to.value)} press={press} />
      <p class="soft" role="status">
        {first.value === undefined
          ? t`Press the first quiet hour, then the last one; the hours are the same each day.`
          : t`Now press the last quiet hour.`}
      </p>
      <form
        class="person-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (isWhole) void keep(`${from.value}-${to.value}`);
        }}
      >
        <label>
          {t`From`}
          <input
            type="time"
            value={from.value}
            onInput={({ currentTarget }) => {
              from.value = currentTarget.value;
            }}
          />
        </label>
        <label>
          {t`To`}
          <input
            type="time"
            value={to.value}
            onInput={({ currentTarget }) => {
              to.value = currentTarget.value;
            }}
          />
        </label>
        <div class="actions">
          <button
            type="submit"
            class="button primary"
            disabled={isBusy.value || !isChanged || !isWhole}
          >
            {t`Save`}
          </button>
          {hours !== '' && (
            <button type="button" class="button" disabled={isBusy.value} onClick={() => keep('')}>
              {t`No quiet hours`}
            </button>
          )}
        </div>
      </form>
      <p class="problem" role="alert">
        {problem.value}
      </p>
    </section>
  );
}

type WeekProps = {
  /** Minutes of the day; undefined: not set. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly press: (hour: number) => void;
};

/** For the pointer; the fields are for the keyboard. */
function Week({ from, to, press }: WeekProps) {
  const whole = DAY_HOURS * 60;
  const spans =
    from === undefined || to === undefined || from === to
      ? []
      : from < to
        ? [[from, to] as const]
        : [[0, to] as const, [from, whole] as const];
  const named = new Intl.DateTimeFormat(undefined, { weekday: 'short', timeZone: 'UTC' });
  const days = Array.from({ length: DAYS }, (_, day) => named.format(MONDAY + day * DAY_MS));
  return (
    <div class="week" aria-hidden="true">
      <ul class="week-days">
        {days.map((day) => (
          <li key={day}>{day}</li>
        ))}
      </ul>
      <svg
        viewBox={`0 0 ${whole} ${DAYS}`}
        preserveAspectRatio="none"
        aria-hidden="true"
        onClick={({ currentTarget, clientX }) => {
          const { left, width } = currentTarget.getBoundingClientRect();
          const hour = Math.floor(((clientX - left) / width) * DAY_HOURS);
          press(Math.min(DAY_HOURS - 1, Math.max(0, hour)));
        }}
      >
        {days.map((day, row) => (
          <g key={day}>
            <rect class="awake" x={0} y={row + 0.08} width={whole} height={0.84} />
            {spans.map(([begin, end]) => (
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

const clockText = (hour: number) => `${String(hour % DAY_HOURS).padStart(2, '0')}:00`;

function minutesOf(clock: string): number | undefined {
  const match = /^(\d\d):(\d\d)$/.exec(clock);
  return match === null ? undefined : Number(match[1]) * 60 + Number(match[2]);
}
