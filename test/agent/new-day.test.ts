// The first turn of a day: it is shown what the new file opens with, whichever file it is read from.

import { expect, it } from 'vitest';
import { type ScriptedRequest, says } from '../support/scripted-model.ts';
import { createRig } from './agent-rig.ts';

const DAY_MS = 24 * 3_600_000;
const TURNS = 12;

const shown = (request: ScriptedRequest | undefined) =>
  (request?.messages ?? []).map(({ text }) => text).join('\n');

/** A day of turns, then the next morning, maybe in a new process. */
async function morning(carry: 'recent' | 'nothing', restarts: boolean) {
  const rig = await createRig({ policy: { carry, rotationCarryMessages: 6 } });
  for (let turn = 1; turn <= TURNS; turn += 1) {
    rig.model.script(says(`answer-${turn}-`));
    await rig.ask(turn, `question-${turn}-`);
  }
  await rig.clock.advance(DAY_MS);
  if (restarts) await rig.restart();
  return rig;
}

it.each([false, true])(
  'shows nothing of the day before with carry nothing (restart: %s)',
  async (restarts) => {
    const rig = await morning('nothing', restarts);
    rig.model.script(says('good morning'));
    await rig.ask(20, 'question-20-');
    expect(shown(rig.model.requests.at(-1))).not.toMatch(/(?:question|answer)-(?!20)\d/);
    expect(rig.model.requests.at(-1)?.messages).toHaveLength(1);
  },
);

it.each([false, true])(
  'shows the last messages with carry recent (restart: %s)',
  async (restarts) => {
    const rig = await morning('recent', restarts);
    rig.model.script(says('good morning'), says('yes'));
    await rig.ask(20, 'question-20-');
    const first = shown(rig.model.requests.at(-1));
    expect(first.match(/question-\d+-/g)).toEqual([
      'question-10-',
      'question-11-',
      'question-12-',
      'question-20-',
    ]);
    await rig.ask(21, 'question-21-');
    expect(shown(rig.model.requests.at(-1)).startsWith(first)).toBe(true);
  },
);

it('shows the same to a turn that was prepared before midnight', async () => {
  const rig = await createRig({ policy: { carry: 'nothing' } });
  rig.model.script(says('answer-1-'), says('answer-2-'));
  await rig.ask(1, 'question-1-');
  const prepared = await rig.agent.prepare(...rig.place);
  await rig.clock.advance(DAY_MS);
  const turn = rig.agent.run(
    rig.inputOf(2, ['question-2-']),
    prepared,
    new AbortController().signal,
  );
  while ((await turn.next()).done !== true);
  expect(shown(rig.model.requests.at(-1))).not.toContain('question-1-');
});

it('goes on in the file of a turn that was killed before midnight', async () => {
  const rig = await createRig({ policy: { carry: 'nothing' } });
  rig.model.script(says('answer-1-'));
  await rig.ask(1, 'question-1-');
  const stop = new AbortController();
  rig.model.script(async function* (_request, signal) {
    yield { type: 'text', delta: 'half' };
    stop.abort(new Error('killed'));
    signal.throwIfAborted();
  });
  await expect(rig.run(rig.inputOf(2, ['question-2-']), stop.signal)).rejects.toThrow('killed');
  await rig.clock.advance(DAY_MS);
  await rig.restart();
  rig.model.script(says('answer-2-'));
  await rig.ask(2, 'question-2-');
  expect(shown(rig.model.requests.at(-1))).toContain('question-1-');
});
