// Builds what has the owners' memory thought over without a message.

import type { Foundations } from '../../app/foundations.ts';
import type { BackgroundTask } from '../../kernel/contributions.ts';
import { messageId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { quietUntil } from '../schedule/rules/quiet-hours.ts';
import type { BuiltMemory } from './build-memory.ts';
import { createReflectionClock, REFLECTION_CLOCK_SCOPE } from './reflection-clock.ts';
import type { ReflectionDesk } from './reflection-desk.ts';

export type ReflectionParts = Pick<Foundations, 'live' | 'clock' | 'log' | 'bus'> & {
  readonly store: Pick<Foundations['store'], 'scope' | 'revision'>;
  readonly remembering: Pick<BuiltMemory, 'reflectionStamp'>;
};

export function buildReflectionClock(
  { live, clock, log, store, bus, remembering }: ReflectionParts,
  desk: Pick<ReflectionDesk, 'byItself'>,
  ownerChat: () => Promise<ChatRef>,
): BackgroundTask {
  const thinking = createReflectionClock({
    ...{ clock, log, state: store.scope(REFLECTION_CLOCK_SCOPE) },
    revision: () => store.revision(),
    settings() {
      const { enabled, reflection } = live.config.memory;
      return enabled ? reflection : { ...reflection, everyHours: 0 };
    },
    isQuiet() {
      const { quietHours, sessions } = live.config;
      return quietUntil(clock.now(), quietHours, sessions.timeZone) !== undefined;
    },
    stamp: () => remembering.reflectionStamp(),
    reflect: (name, apply) => desk.byItself(name, apply),
    async tell(name, markdown) {
      await bus.send({
        id: messageId(`reflection/${name}/told`),
        chat: await ownerChat(),
        markdown,
      });
    },
  });
  return { name: 'reflection', run: (signal) => thinking.run(signal) };
}
