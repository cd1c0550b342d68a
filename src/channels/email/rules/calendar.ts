// Calendar entries of a mail (RFC 5545) as text for the model: title, time with its zone, place,
// organiser, attendees. Times are shown as written.

import { oneLine, shortened, visibleText } from '../../../lib/text/cut.ts';

const MAX_CHARS = 64 * 1024;
const MAX_EVENTS = 3;
const MAX_ATTENDEES = 10;
const MAX_FIELD_CHARS = 300;

type Property = {
  /** Upper case. */
  readonly name: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly value: string;
};

type Calendar = {
  readonly method: string | undefined;
  readonly events: readonly (readonly Property[])[];
};

/** Lower-case METHOD of the calendar, e.g. `request` or `reply`. */
export function calendarMethod(ics: string): string | undefined {
  return read(ics).method;
}

/** Undefined if the text contains no event. */
export function describeCalendar(ics: string): string | undefined {
  const { method, events } = read(ics);
  if (events.length === 0) return undefined;
  const kind = method === 'request' ? 'invitation' : 'entry';
  const shown = events.slice(0, MAX_EVENTS).map((event) => describeEvent(event, kind));
  const more = events.length - shown.length;
  return [...shown, ...(more > 0 ? [`[${more} more calendar entries]`] : [])].join('\n\n');
}

function read(ics: string): Calendar {
  const text = ics
    .slice(0, MAX_CHARS)
    .replace(/\r\n?/g, '\n')
    .replace(/\n[ \t]/g, '');
  const events: Property[][] = [];
  const open: string[] = [];
  let method: string | undefined;
  for (const line of text.split('\n')) {
    const property = propertyIn(line);
    if (property === undefined) continue;
    const value = property.value.trim().toUpperCase();
    if (property.name === 'BEGIN') {
      open.push(value);
      if (value === 'VEVENT') events.push([]);
    } else if (property.name === 'END') open.pop();
    // Alarms inside an event have fields of the same names.
    else if (open.at(-1) === 'VEVENT') events.at(-1)?.push(property);
    else if (property.name === 'METHOD') method ??= value.toLowerCase();
  }
  return { method, events };
}

function propertyIn(line: string): Property | undefined {
  const head =
    /^([A-Za-z0-9-]+)((?:;[A-Za-z0-9-]+=(?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*)*):/.exec(
      line.slice(0, 4_000),
    );
  if (head === null) return undefined;
  const [whole, name = '', list = ''] = head;
  const pairs = [...list.matchAll(/;([A-Za-z0-9-]+)=("[^"]*"|[^";:,]*)/g)];
  const parameters = new Map(
    pairs.map(([, key = '', value = '']) => [key.toUpperCase(), value.replaceAll('"', '')]),
  );
  return { name: name.toUpperCase(), parameters, value: line.slice(whole.length) };
}

function describeEvent(event: readonly Property[], kind: string): string {
  const one = (name: string) => event.find((property) => property.name === name);
  const words = (name: string) => wordsOf(one(name)?.value ?? '');
  const organiser = one('ORGANIZER');
  const attendees = event.filter(({ name }) => name === 'ATTENDEE');
  const lines = [
    ['What', words('SUMMARY')],
    ['When', whenOf(one('DTSTART'), one('DTEND'), one('DURATION'))],
    ['Repeats', words('RRULE')],
    ['Where', words('LOCATION')],
    ['Status', words('STATUS').toLowerCase()],
    ['Organiser', organiser === undefined ? '' : personOf(organiser)],
    ['Attendees', attendeesOf(attendees)],
  ];
  const told = lines.filter(([, text]) => text !== '').map(([label, text]) => `${label}: ${text}`);
  return [`[calendar ${kind} in this mail; it was not added to a calendar]`, ...told].join('\n');
}

/** Undoes the escapes of RFC 5545 section 3.3.11; one line, bounded. */
function wordsOf(value: string): string {
  const plain = value.replace(/\\([nN,;\\])/g, (_, mark: string) =>
    mark.toLowerCase() === 'n' ? ' ' : mark,
  );
  const line = oneLine(visibleText(plain));
  return shortened(line, MAX_FIELD_CHARS);
}

function personOf({ parameters, value }: Property): string {
  const address = wordsOf(value.replace(/^mailto:/i, ''));
  const name = wordsOf(parameters.get('CN') ?? '');
  return name === '' || name === address ? address : `${name} <${address}>`;
}

function attendeesOf(attendees: readonly Property[]): string {
  const named = attendees.slice(0, MAX_ATTENDEES).map((attendee) => {
    const answer = (attendee.parameters.get('PARTSTAT') ?? '').toLowerCase();
    const hasAnswered = /^(accepted|declined|tentative|delegated)$/.test(answer);
    return personOf(attendee) + (hasAnswered ? ` (${answer})` : '');
  });
  const more = attendees.length - named.length;
  return named.join(', ') + (more > 0 ? ` and ${more} more` : '');
}

type Moment = {
  /** E.g. `Thursday 2026-01-15`. */
  readonly day: string;
  /** Empty for a whole-day event. */
  readonly time: string;
  readonly zone: string;
};

function whenOf(
  start: Property | undefined,
  end: Property | undefined,
  duration: Property | undefined,
): string {
  const from = start && momentOf(start, 0);
  if (from === undefined) return start === undefined ? '' : wordsOf(start.value);
  // The end of a whole-day event is the day after its last.
  const to = end && momentOf(end, -1);
  if (from.time === '') {
    const isOneDay = to === undefined || dateOf(to) <= dateOf(from);
    return isOneDay ? `${from.day}, all day` : `${from.day} to ${to.day}, all day`;
  }
  const begin = `${from.day} ${from.time}`;
  if (to === undefined) {
    const length = duration === undefined ? '' : ` for ${wordsOf(duration.value)}`;
    return `${begin}${length} (${from.zone})`;
  }
  const close = to.day === from.day ? to.time : `${to.day} ${to.time}`;
  return to.zone === from.zone
    ? `${begin} to ${close} (${from.zone})`
    : `${begin} (${from.zone}) to ${close} (${to.zone})`;
}

const dateOf = (moment: Moment) => moment.day.slice(-10);

/** `wholeDayShift`: days added if the value is a date without a time. */
function momentOf({ value, parameters }: Property, wholeDayShift: number): Moment | undefined {
  const match = /^(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})(Z?))?$/.exec(value.trim());
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, , utc] = match;
  const shift = hour === undefined ? wholeDayShift : 0;
  const at = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day) + shift));
  const weekday = at.toLocaleDateString('en-US', { weekday: 'long', timeZone: 'UTC' });
  const zone = utc === 'Z' ? 'UTC' : wordsOf(parameters.get('TZID') ?? '') || 'no zone given';
  return {
    day: `${weekday} ${at.toISOString().slice(0, 10)}`,
    time: hour === undefined ? '' : `${hour}:${minute}`,
    zone,
  };
}
