// An answer that says something was done which no tool did is asked for once more; the person gets what
// the model then says, in the model's words.

import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import { ProviderError } from '../../src/kernel/message/errors.ts';
import { breaksOff, calls, says } from '../support/scripted-model.ts';
import { createRig, textOf } from './agent-rig.ts';

const LIE = 'I have sent the email to Bob. I read his answer too.';
const TRUTH = 'I could not send the email: nothing here sends mail.';

const sends = (mails: string[] = []) => ({
  name: 'send_email',
  access: 'send' as const,
  run: async () => `sent, number ${mails.push('mail')}`,
});
const breaks = {
  name: 'send_email',
  access: 'send' as const,
  run: async () => {
    throw new Error('no line');
  },
};
const create = (settings: object = {}, tools = [sends()]) => createRig({ tools, settings });

describe('an answer that says what was not done', () => {
  it('is withdrawn, and the corrected one is all that the person and later turns are shown', async () => {
    const rig = await create();
    rig.model.script(says(LIE), says(TRUTH));
    const { outcome, events } = await rig.run(rig.inputOf(1, ['email Bob']));
    expect(outcome).toMatchObject({ kind: 'answered', answers: [TRUTH] });
    const discarded = events.findIndex(({ type }) => type === 'text_discarded');
    expect(discarded).toBeGreaterThan(0);
    expect(textOf(events.slice(discarded))).toBe(TRUTH);
    const asked = JSON.stringify(rig.model.requests.at(-1)?.messages);
    expect(asked).toContain('I have sent the email to Bob.');
    expect(asked).toContain('no tool did that in this turn');
    expect(await rig.transcript()).toMatchObject([
      { role: 'user' },
      { text: LIE, isDraft: true, unsupported: ['I have sent the email to Bob.'] },
      { text: TRUTH },
      { role: 'turn_end', answers: [TRUTH] },
    ]);
    rig.model.script(says('You are welcome.'));
    await rig.ask(2, 'thanks');
    expect(JSON.stringify(rig.model.requests.at(-1)?.messages)).not.toContain('I have sent');
    rig.model.assertDone();
  });

  it('can be made true, and is believed then', async () => {
    const mails: string[] = [];
    const rig = await create({}, [sends(mails)]);
    rig.model.script(says(LIE), calls([{ name: 'send_email' }]), says('I have sent it now.'));
    expect((await rig.ask(1, 'email Bob')).answers).toEqual(['I have sent it now.']);
    expect(mails).toHaveLength(1);
    rig.model.assertDone();
  });

  it('is asked for once only, also over a kill, and then stands', async () => {
    const rig = await create();
    rig.model.script(says(LIE), breaksOff('I', 'hangs'));
    const stop = new AbortController();
    const killed = new Error('killed');
    const run = rig.run(rig.inputOf(1, ['email Bob']), stop.signal, (event) => {
      if (event.type === 'text_delta' && event.text === 'I') stop.abort(killed);
    });
    await expect(run).rejects.toBe(killed);
    await rig.restart();
    rig.model.script(says(LIE));
    expect((await rig.ask(1, 'email Bob')).answers).toEqual([LIE]);
    expect(rig.model.requests).toHaveLength(3);
    expect(JSON.stringify(rig.model.requests.at(-1)?.messages)).toContain('was withdrawn');
    rig.model.assertDone();
  });

  it('stands where it cannot be asked for again', async () => {
    const rig = await create();
    const down = new ProviderError('down', {
      failure: { kind: 'server', status: 500 },
      provider: 'test',
      model: 'test/scripted',
      userText: 'The model is down.',
    });
    rig.model.script(says(LIE), breaksOff('', down));
    expect(await rig.ask(1, 'email Bob')).toMatchObject({ kind: 'answered', answers: [LIE] });
    rig.model.script(says(LIE), says(' '));
    expect((await rig.ask(2, 'email Bob')).answers).toEqual([LIE]);
    rig.state.settings = { maxTurnTokens: 1 };
    rig.model.script(says(LIE));
    expect((await rig.ask(3, 'email Bob')).answers).toEqual([LIE]);
    rig.model.assertDone();
  });

  it('is found too where a call failed, and where the answer is written by a call of its own', async () => {
    const rig = await create({ finalAnswer: 'separate' }, [breaks]);
    rig.model.script(calls([{ name: 'send_email' }]), says('Tried.'), says(LIE), says(TRUTH));
    const { outcome, events } = await rig.run(rig.inputOf(1, ['email Bob']));
    expect(outcome.answers).toEqual([TRUTH]);
    expect(
      textOf(events.slice(events.findLastIndex(({ type }) => type === 'text_discarded'))),
    ).toBe(TRUTH);
    rig.model.assertDone();
  });
});

describe('an answer is believed', () => {
  it.each([
    ['what a tool did', {}],
    ['what an owner is asked about', { rights: { ...ALL_RIGHTS, send: 'ask' as const } }],
  ])('about %s', async (_what, more) => {
    const rig = await create();
    rig.model.script(calls([{ name: 'send_email' }]), says(LIE));
    expect((await rig.run(rig.inputOf(1, ['go'], more))).outcome.answers).toEqual([LIE]);
    rig.model.assertDone();
  });

  it('about what a message of our own reports, and where nothing is checked', async () => {
    const rig = await create();
    const input = rig.inputOf(1, ['The call that waited was allowed: sent.']);
    const [first] = input.messages;
    const sender = { kind: 'system', source: 'approval' } as const;
    const report = { ...first, message: { ...first.message, sender } };
    rig.model.script(says(LIE));
    expect((await rig.run({ ...input, messages: [report] })).outcome.answers).toEqual([LIE]);
    rig.state.settings = { claimCheck: false };
    rig.model.script(says(LIE));
    expect((await rig.ask(2, 'go')).answers).toEqual([LIE]);
    rig.model.assertDone();
  });
});
