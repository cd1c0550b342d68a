// Builds what keeps conversations on one's own machines; which of them others were started from, subagents,
// jobs and workflows say.

import type { Models } from '../../agent/models.ts';
import type { EmbeddedStore } from '../../kernel/bus/store/store.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Contributed } from '../../kernel/contributions.ts';
import type { Routes } from '../../kernel/intake/routes.ts';
import { type ChatRef, chatRefOf } from '../../kernel/message/message.ts';
import { LocalOnly } from './local-only.ts';

export type LocalOnlyParts = {
  readonly live: LiveConfig;
  readonly store: Pick<EmbeddedStore, 'scope'>;
  readonly models: Models;
  readonly people: { readonly routes: Pick<Routes, 'sessionOf'> };
  readonly contributed: Pick<Contributed, 'startedFrom'>;
};

const SCOPE = 'local-only';

export function buildLocalOnly(parts: LocalOnlyParts): LocalOnly {
  const { live, store, models, people, contributed } = parts;
  return new LocalOnly({
    state: store.scope(SCOPE),
    sessionOf: (chat: ChatRef) => people.routes.sessionOf(chat),
    forAll: () => live.config.localModels.only,
    async isHome(model) {
      // A server says only when it is asked that it hands a model on.
      await models.current().ready(model);
      return models.current().isHome(model);
    },
    async startedFrom(session) {
      const { channel, chat = '' } = chatRefOf(session) ?? {};
      const source = channel === undefined ? undefined : contributed.startedFrom(channel);
      return source === undefined ? [] : source(chat);
    },
  });
}
