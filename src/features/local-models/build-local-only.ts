// Builds what keeps conversations on one's own machines, and knows which of them others were started
// from: helpers, jobs, runs of workflows.

import type { Models } from '../../agent/models.ts';
import type { Collections } from '../../app/collections.ts';
import type { EmbeddedStore } from '../../kernel/bus/store/store.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Routes } from '../../kernel/intake/routes.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { type ChatRef, chatRefOf, sessionKeyOf } from '../../kernel/message/message.ts';
import { JOB_CHANNEL } from '../schedule/rules/job.ts';
import { SUBAGENT_CHANNEL } from '../subagents/rules/subagent.ts';
import { WORKFLOW_CHANNEL } from '../workflows/rules/workflow.ts';
import { createLocalOnly, type LocalOnly } from './local-only.ts';

export type LocalOnlyParts = {
  readonly live: LiveConfig;
  readonly store: Pick<EmbeddedStore, 'scope'>;
  readonly collections: Collections;
  readonly models: Models;
  /** Built later than this. */
  routes(): Pick<Routes, 'sessionOf'>;
};

const SCOPE = 'local-only';

export function buildLocalOnly({
  live,
  store,
  collections,
  models,
  routes,
}: LocalOnlyParts): LocalOnly {
  const { subagents, jobs, workflows } = collections;
  const sessionOf = (chat: ChatRef) => routes().sessionOf(chat);

  async function makersOf(id: string): Promise<readonly SessionKey[]> {
    const job = (await jobs.all.get(id)) ?? (await jobs.removed.get(id));
    const maker = job?.maker;
    if (maker?.kind !== 'person') return [];
    return [...new Set([sessionKeyOf(maker.chat), await sessionOf(maker.chat)])];
  }

  return createLocalOnly({
    ...{ state: store.scope(SCOPE), sessionOf },
    forAll: () => live.config.localModels.only,
    async isHome(model) {
      // A server says only when it is asked that it hands a model on.
      await models.current().ready(model);
      return models.current().isHome(model);
    },
    async startedFrom(session) {
      const { channel, chat: id = '' } = chatRefOf(session) ?? {};
      if (channel === JOB_CHANNEL) return makersOf(id);
      if (channel === SUBAGENT_CHANNEL) {
        const run = (await subagents.runs.get(id)) ?? (await subagents.removed.get(id));
        return run === undefined ? [] : [run.parent.session];
      }
      const home =
        channel === WORKFLOW_CHANNEL ? (await workflows.runs.get(id))?.starter.home : undefined;
      if (home === undefined) return [];
      return home.kind === 'job' ? makersOf(home.job) : [home.session];
    },
  });
}
