// Settings that several channels share, and the check of the names by which groups call the agent.

import { z } from 'zod';
import { STRANGER_POLICIES } from '../access/admission.ts';
import { isCallName } from '../access/group-names.ts';
import { type Problems, strangeItems } from './problems.ts';
import { choice, texts } from './settings-fields.ts';

export const allowFrom = texts().describe(
  'Stable sender ids that may talk to the agent; empty = nobody, "*" = everybody.',
);

export const groups = texts().describe(
  'Stable ids of the groups the agent takes part in; empty = no group.',
);

export const groupSettings = {
  groups,
  groupAllow: choice(['allowlisted', 'members'], 'allowlisted').describe(
    'Who may speak to the agent in a listed group: who is on allowFrom, or any member.',
  ),
  groupNames: z
    .array(z.string().max(64))
    .max(20)
    .default([])
    .describe('Names that call the agent besides a mention; * stands for any letters of a word.'),
};
export const strangers = choice(STRANGER_POLICIES, 'silent').describe(
  'People who are not let in. silent: they get no answer and the owner is asked; pairing: they ' +
    'get a code for the owner; closed: refused; open: answered, as guests.',
);

export const strangeCallNames = (section: string, names: readonly string[]): Problems =>
  strangeItems(
    `${section}.groupNames`,
    names,
    isCallName,
    (name) => `"${name}" is no name: it has no letter or digit`,
    'Write plain words; * stands for any letters of a word.',
  );
