// Whose a turn is: an owner's own, another person's, or a group's. What nobody vouches for, and what
// is nobody's, gets notes of its own and never the owner's.

import { createHash } from 'node:crypto';
import type { Persons } from '../../features/people/persons.ts';
import { nameOfLanguage, type Person } from '../access/person.ts';
import { type InboundMessage, sessionKeyOf } from '../message/message.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER, type TurnPerson } from '../message/notes.ts';

const NAME_CHARS = 12;

export type TurnPersonOf = (message: InboundMessage) => Promise<TurnPerson>;

export function createTurnPersonOf(persons: Pick<Persons, 'author'>): TurnPersonOf {
  return async (message) => {
    const { sender } = message;
    if (sender.kind === 'system' && sender.person !== undefined) return sender.person;
    const isBetweenTwo = message.group === undefined && message.addressing === 'direct';
    const person = isBetweenTwo ? await persons.author(message) : undefined;
    return { notes: notesOf(message, person), ...waysOf(person) };
  };
}

function notesOf({ sender, chat }: InboundMessage, person: Person | undefined): string {
  if (person === undefined) {
    const { thread: _topic, ...whole } = chat;
    const hash = createHash('sha256').update(sessionKeyOf(whole)).digest('hex');
    return `${GROUPS_FOLDER}/g${hash.slice(0, NAME_CHARS)}/`;
  }
  if (sender.kind === 'person' && sender.verified === 'unverified') {
    return `${PEOPLE_FOLDER}/${person.id}-unverified/`;
  }
  return person.role === 'owner' ? '' : `${PEOPLE_FOLDER}/${person.id}/`;
}

function waysOf(person: Person | undefined): Omit<TurnPerson, 'notes'> {
  const { language, timeZone } = person ?? {};
  const name = language === undefined ? undefined : nameOfLanguage(language);
  return {
    ...(name === undefined ? {} : { language: name }),
    ...(timeZone === undefined ? {} : { timeZone }),
  };
}
