// Builds what keeps conversations on one's own machines; which of them others were started from, subagents,
// jobs and workflows say.

import { MODEL_SERVERS, type Models } from '../../agent/models.ts';
import type { StateStore } from '../../kernel/bus/store/store.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Contributed } from '../../kernel/contributions.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import type { Routes } from '../../kernel/intake/routes.ts';
import { type ChatRef, chatRefOf } from '../../kernel/message/message.ts';
import { LocalOnly } from './local-only.ts';

export const LOCAL_ONLY = port<LocalOnly>('local only');

const SCOPE = 'local-only';

export type LocalOnlyParts = {
  readonly live: LiveConfig;
  readonly store: StateStore;
  readonly models: Models;
  readonly routes: Pick<Routes, 'sessionOf'>;
  readonly startedFrom: Contributed['startedFrom'];
};

export function install(kernel: Kernel): void {
  const { live, store, people, contributed } = kernel;
  const models = kernel.use(MODEL_SERVERS);
  const { startedFrom } = contributed;
  const parts = { live, store, models, routes: people.routes, startedFrom };
  kernel.provide(LOCAL_ONLY, openLocalOnly(parts));
}

export function openLocalOnly(parts: LocalOnlyParts): LocalOnly {
  const { live, store, models, routes } = parts;
  return new LocalOnly({
    state: store.scope(SCOPE),
    sessionOf: (chat: ChatRef) => routes.sessionOf(chat),
    forAll: () => live.config.localModels.only,
    async isHome(model) {
      // A server says only when it is asked that it hands a model on.
      await models.current().ready(model);
      return models.current().isHome(model);
    },
    async startedFrom(session) {
      const { channel, chat = '' } = chatRefOf(session) ?? {};
      const source = channel === undefined ? undefined : parts.startedFrom(channel);
      return source === undefined ? [] : source(chat);
    },
  });
}
