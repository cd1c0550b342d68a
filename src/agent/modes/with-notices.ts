// What a person is told while another model than the main one is asked, on its way through a turn.

import type { AgentEvent } from '../../core/event.ts';

/** Yields what `work` tells, as it comes. @throws as `work` does */
export async function* withNotices<Result>(
  work: (tell: (text: string) => void) => Promise<Result>,
): AsyncGenerator<AgentEvent, Result, void> {
  const told: string[] = [];
  let news = Promise.withResolvers<void>();
  let isOver = false;
  const done = work((text) => {
    told.push(text);
    news.resolve();
  }).finally(() => {
    isOver = true;
    news.resolve();
  });
  // Whoever listens may leave before it fails.
  done.catch(() => undefined);
  while (true) {
    await news.promise;
    news = Promise.withResolvers<void>();
    for (const text of told.splice(0)) yield { type: 'notice', text };
    if (isOver) return done;
  }
}
