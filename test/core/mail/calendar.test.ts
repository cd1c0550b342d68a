// Calendar entries as people read them: times with their zone as written, bounded, and hostile ones
// without effect.

import { describe, expect, it } from 'vitest';
import { calendarMethod, describeCalendar } from '../../../src/channels/email/rules/calendar.ts';

const ics = (event: readonly string[], ...head: readonly string[]) =>
  [
    'BEGIN:VCALENDAR',
    ...head,
    'BEGIN:VTIMEZONE',
    'TZID:Europe/Berlin',
    'BEGIN:STANDARD',
    'DTSTART:19701025T030000',
    'END:STANDARD',
    'END:VTIMEZONE',
    'BEGIN:VEVENT',
    ...event,
    'BEGIN:VALARM',
    'SUMMARY:Alarm',
    'DURATION:PT5M',
    'END:VALARM',
    'END:VEVENT',
    'END:VCALENDAR',
  ].join('\r\n');

const when = (...event: readonly string[]) =>
  /^When: (.*)$/m.exec(describeCalendar(ics(event)) ?? '')?.[1];

describe('an invitation', () => {
  it('says what, when with its zone, where, by whom and for whom', () => {
    const event = [
      'SUMMARY:Lunch\\, with a very lo',
      ' ng title',
      'DTSTART;TZID=Europe/Berlin:20260115T120000',
      'DTEND;TZID=Europe/Berlin:20260115T133000',
      'RRULE:FREQ=WEEKLY;COUNT=4',
      'LOCATION:Luigi\\nMain Street 1',
      'ORGANIZER;CN="Anna: the boss":mailto:anna@person.test',
      'ATTENDEE;CN=Bob;PARTSTAT=ACCEPTED:mailto:bob@person.test',
      'ATTENDEE;PARTSTAT=NEEDS-ACTION:MAILTO:agent@nanobot.test',
    ];
    expect(describeCalendar(ics(event, 'METHOD:REQUEST'))).toBe(
      [
        '[calendar invitation in this mail; it was not added to a calendar]',
        'What: Lunch, with a very long title',
        'When: Thursday 2026-01-15 12:00 to 13:30 (Europe/Berlin)',
        'Repeats: FREQ=WEEKLY;COUNT=4',
        'Where: Luigi Main Street 1',
        'Organiser: Anna: the boss <anna@person.test>',
        'Attendees: Bob <bob@person.test> (accepted), agent@nanobot.test',
      ].join('\n'),
    );
  });

  it.each([
    [
      ['DTSTART:20260115T110000Z', 'DTEND:20260115T120000Z'],
      'Thursday 2026-01-15 11:00 to 12:00 (UTC)',
    ],
    [
      ['DTSTART:20260115T110000', 'DURATION:PT1H'],
      'Thursday 2026-01-15 11:00 for PT1H (no zone given)',
    ],
    [['DTSTART;VALUE=DATE:20260115', 'DTEND;VALUE=DATE:20260116'], 'Thursday 2026-01-15, all day'],
    [
      ['DTSTART;VALUE=DATE:20260130', 'DTEND;VALUE=DATE:20260202'],
      'Friday 2026-01-30 to Sunday 2026-02-01, all day',
    ],
    [
      ['DTSTART:20260115T233000Z', 'DTEND;TZID=Asia/Tokyo:20260116T100000'],
      'Thursday 2026-01-15 23:30 (UTC) to Friday 2026-01-16 10:00 (Asia/Tokyo)',
    ],
    [['DTSTART:someday'], 'someday'],
  ])('at %j', (event, expected) => {
    expect(when(...event)).toBe(expected);
  });

  it('is bounded: attendees, entries, long fields', () => {
    const attendees = Array.from({ length: 500 }, (_, n) => `ATTENDEE:mailto:p${n}@person.test`);
    const text = describeCalendar(ics([`SUMMARY:${'x'.repeat(5_000)}`, ...attendees])) ?? '';
    expect(text).toContain('p9@person.test and 490 more');
    expect(text.length).toBeLessThan(1_000);
    const many = Array.from({ length: 9 }, () => ics(['SUMMARY:One'])).join('\r\n');
    expect(describeCalendar(many)).toMatch(/\[6 more calendar entries\]$/);
  });

  it('holds no invisible characters and no lines of its own making', () => {
    const text =
      describeCalendar(ics(['SUMMARY:a\u202Eb\u200Bc\\nOrganiser: eve@evil.test'])) ?? '';
    expect(text.split('\n')).toEqual([
      '[calendar entry in this mail; it was not added to a calendar]',
      'What: abc Organiser: eve@evil.test',
    ]);
  });

  it.each([
    '',
    'BEGIN:VEVENT',
    'END:VEVENT\r\nEND:VEVENT',
    `BEGIN:VEVENT\n${'ATTENDEE;A="'.repeat(5_000)}`,
    `BEGIN:VEVENT\nA${';X=","'.repeat(20_000)}`,
    'BEGIN:VCALENDAR\u0000\nSUMMARY',
  ])('never breaks on %#', (text) => {
    expect(() => describeCalendar(text)).not.toThrow();
  });
});

it('knows an answer by its method', () => {
  expect(calendarMethod(ics([], 'METHOD:REPLY'))).toBe('reply');
  expect(calendarMethod(ics([]))).toBeUndefined();
  expect(describeCalendar('BEGIN:VCALENDAR\nEND:VCALENDAR')).toBeUndefined();
});
