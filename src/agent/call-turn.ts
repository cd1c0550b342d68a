// What one tool call needs of the turn it is made in: less than a whole turn, so that a step that no
// model asked for is held to the same rights, questions and limits.

import type { Thread } from './thread.ts';
import type { TurnContext } from './turn-context.ts';
import type { TurnRights } from './turn-rights.ts';

export type CallTurn = Pick<TurnContext, 'input' | 'settings' | 'clock' | 'signal' | 'toolbox'> & {
  readonly rights: Pick<TurnRights, 'current'>;
  readonly thread: Pick<
    Thread,
    'isTainted' | 'knownTexts' | 'attached' | 'ordinalOf' | 'callsBefore'
  >;
};
