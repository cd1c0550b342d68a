// Turns as a person lives them: what is asked, shown, answered and kept.

import { describe, expect, it } from 'vitest';
import { breaksOff, calls, says } from '../support/scripted-model.ts';
import { createRig, textOf } from './agent-rig.ts';

describe('a turn', () => {
  it('streams the text as it comes and answers with exactly what was shown', async () => {
    const rig = await createRig();
    rig.model.script(says('Good morning to you.'));
    const { outcome, events } = await rig.run(rig.inputOf(1, ['hello']));
    expect(outcome).toEqual({ kind: 'answered', answers: ['Good morning to you.'], throughSeq: 1 });
    expect(events.filter((event) => event.type === 'text_delta').length).toBeGreaterThan(1);
    expect(textOf(events)).toBe('Good morning to you.');
    rig.model.assertDone();
  });
});
void breaksOff;
void calls;
