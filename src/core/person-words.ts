// How a person is shown to an owner and to themselves. Names and ids are shown as they are, never as
// markup.

import { nameOfLanguage, type Person, type PersonDoor } from './person.ts';
import { verbatim } from './stranger-words.ts';

export function doorWords({ channel, ids }: PersonDoor): string {
  return `${channel} ${ids.map(verbatim).join(', ')}`;
}

/** One line, with the id by which the person is meant in commands. */
export function personLine(person: Person): string {
  const { id, name, role, doors } = person;
  const named = name === '' ? '' : `${verbatim(name)} `;
  return `${named}(${verbatim(id)}), ${role ?? 'not let in'}: ${doors.map(doorWords).join('; ')}`;
}

export function languageWords({ language }: Pick<Person, 'language'>): string {
  if (language === undefined) return 'the language of your message';
  return `${nameOfLanguage(language) ?? language} (${language})`;
}
