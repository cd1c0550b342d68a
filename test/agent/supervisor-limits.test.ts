// What bounds the work of a supervised turn: rounds of the turn, a specialist's tokens and window, models that
// say nothing usable or the same without end.

import { expect, it } from 'vitest';
import { antiDriftSchema } from '../../src/features/steadiness/settings.ts';
import { calls, says } from '../support/scripted-model.ts';
import { doesNotAnswer } from './shared-turns.ts';
import { createSupervisedRig, routes } from './supervised-rig.ts';

const read = { name: 'read_file', input: { path: 'a' } };
const tools = [
  { name: 'read_file', access: 'read' as const, run: async () => 'one line '.repeat(400) },
];
const textOf = (value: unknown) => JSON.stringify(value);

it('brings what was begun to its end where hardly a round of the turn is left', async () => {
  const { rig, main, supervisor, guardian, asked, warnings } = await createSupervisedRig({
    tools,
    settings: { maxToolIterations: 5 },
  });
  supervisor.script(says(routes('guardian', 'Look.')), says(routes('guardian', 'Look again.')));
  guardian.script(says('All is well.'), says('Still.'));
  main.script(says(''));
  expect((await rig.ask(1, 'look')).answers).toEqual(['All is well.\n\nStill.']);
  expect(asked).toEqual(['supervisor', 'guardian', 'supervisor', 'guardian', 'main']);
  expect(warnings).toMatchObject([{ why: 'steps' }]);
});

it('ends at a limit with what specialists wrote to the letter, and says that it is one', async () => {
  const table = '| host | up |\n|---|---|\n| `a` |  1 |';
  const { rig, main, supervisor, guardian, asked } = await createSupervisedRig({
    tools,
    settings: { maxToolIterations: 3 },
  });
  supervisor.script(says(routes('guardian', 'Look.')), says(routes('guardian', 'Again.')));
  guardian.script(says(table));
  const [answer = ''] = (await rig.ask(1, 'look')).answers;
  expect(answer).toMatch(
    /^```\n\| host \| up \|\n\|---\|---\|\n\| `a` \| {2}1 \|\n```\n\n\[Stopped after 3 rounds/,
  );
  expect(asked).not.toContain('main');
  main.assertDone();
});

it.each([
  ['tokens', { tools }],
  ['window', { tools, guardian: { contextTokens: 1000 } }],
])('has a specialist write once its %s are used up', async (what, options) => {
  const { rig, main, supervisor, guardian } = await createSupervisedRig({
    ...options,
    files: {
      'agents/guardian.yaml':
        'description: Watches.\nmodel: guardian\ntools: [read_file]\nlimits: {rounds: 9, tokens: 1000}\n',
    },
  });
  const usage = {
    inputTokens: what === 'tokens' ? 990 : 9,
    outputTokens: 10,
    cachedTokens: 0,
  };
  supervisor.script(says(routes('guardian', 'Look.')), says(routes('FINISH')));
  guardian.script(calls([read], '', { usage }), says('It is well.'));
  main.script(says(''));
  expect((await rig.ask(1, 'look')).answers).toEqual(['It is well.']);
  expect(guardian.requests[0]?.toolChoice).toBeUndefined();
  expect(guardian.requests[1]?.toolChoice).toBe('none');
});

it('offers a specialist to nobody while it rests, because it fails or writes nothing', async () => {
  const { rig, main, supervisor, guardian, told, kind } = await createSupervisedRig({ tools });
  guardian.script(says(''), says(''), doesNotAnswer);
  for (const turn of [1, 2, 3, 4]) {
    supervisor.script(
      says(routes('guardian', 'Look.')),
      ...(turn < 4 ? [says(routes('FINISH'))] : []),
    );
    main.script(says('I looked.'));
    if (turn === 4) supervisor.script(says(routes('FINISH')));
    const [answer = ''] = (await rig.ask(turn, 'look')).answers;
    expect(answer).toMatch(/^I looked\.(?:\n\n\[guardian gave no result)?/);
    const [system] = supervisor.requests.at(turn < 4 ? -2 : -1)?.system ?? [];
    expect(textOf(system).includes('- guardian: Watches health.')).toBe(turn < 4);
  }
  expect(guardian.requests).toHaveLength(3);
  expect(told).toEqual([
    expect.stringMatching(/^The specialist guardian guardian does not answer/),
  ]);
  expect((await kind.about()).join()).toContain('(failed 3 times)');
});

it('says once what a specialist wrote again to the letter', async () => {
  const { rig, main, supervisor, guardian } = await createSupervisedRig({ tools });
  supervisor.script(
    ...['One.', 'Two.', 'Three.'].map((task) => says(routes('guardian', task))),
    says(routes('FINISH')),
  );
  guardian.script(says('All is well.'), says('All is well.'), says('Now it is not.'));
  main.script(says('[[output 2]]'));
  expect((await rig.ask(1, 'look')).answers).toEqual(['Now it is not.\n\nAll is well.']);
});

it('leaves a supervisor alone that names nobody there is, three times in a row', async () => {
  const { rig, main, supervisor, asked, told } = await createSupervisedRig({ tools });
  for (const turn of [1, 2, 3, 4]) {
    if (turn < 4) supervisor.script(says(routes('optimizer', 'Look.')));
    main.script(says('Alone.'));
    expect((await rig.ask(turn, 'hello')).answers).toEqual(['Alone.']);
  }
  expect(asked.filter((name) => name === 'supervisor')).toHaveLength(3);
  expect(told).toEqual([expect.stringMatching(/gives no usable answer since/)]);
});

it('breaks off a local specialist that repeats itself without end, and keeps what it said once', async () => {
  const { rig, main, supervisor, guardian } = await createSupervisedRig({
    tools,
    guardian: { local: true },
    settings: { antiDrift: antiDriftSchema.parse({ enabled: 'on' }) },
  });
  supervisor.script(says(routes('guardian', 'Look.')), says(routes('FINISH')));
  const again = 'All hosts are healthy and nothing is to be done. ';
  guardian.script(says(`Hosts:\n\n${again.repeat(500)}`));
  main.script(says(''));
  const [answer = ''] = (await rig.ask(1, 'look')).answers;
  expect(answer.split(again.trim()).length).toBeLessThan(4);
  expect(answer).toContain('[The model repeated itself from here on and was stopped.]');
});
