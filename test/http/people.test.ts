// People over HTTP: what an owner sees, decides and answers, with the gateway's own decisions behind
// it, and what is refused.

import { describe, expect, it } from 'vitest';
import type { ShownPerson } from '../../src/features/people/rules/views.ts';
import { userId } from '../../src/kernel/message/ids.ts';
import type { AuditEvent } from '../../src/kernel/observe/telemetry.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { makePeopleRig, OWNER, person } from '../gateway/people-rig.ts';
import { startHttp } from './http-rig.ts';

const EVE = '666';
const UNKNOWN_SENDERS = '/api/v1/people/unknown-senders';
const ANSWERS = '/api/v1/people/answers';

/** Eve has knocked, and the owner was asked on the door last used. */
async function knocked() {
  const rig = await makePeopleRig();
  await rig.say(OWNER, 'hello');
  await rig.say(EVE, 'let <b>me</b> in');
  const { people, questions } = rig;
  const audited: AuditEvent[] = [];
  const audit = { note: (event: AuditEvent) => void audited.push(event) };
  const http = await startHttp({
    people: {
      ...{ people, questions, owner: person('owner', {}), audit, clock: systemClock },
      configured: () => ({
        approvals: { owner: 'normal', trusted: 'normal' },
        people: [],
        groups: [{ who: 'telegram:-42', approvals: 'normal' }],
      }),
    },
  });
  return {
    rig,
    http,
    audited,
    view: async () => JSON.parse((await http.ask('/api/v1/people')).body),
    async [Symbol.asyncDispose]() {
      await http.close();
      await rig[Symbol.asyncDispose]();
    },
  };
}

describe('the view of people', () => {
  it('tells who waits, with what they wrote, and who is known', async () => {
    await using test = await knocked();
    const answer = await test.http.ask('/api/v1/people');
    expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'no-store']);
    const view = JSON.parse(answer.body);
    expect(view.unknownSenders).toMatchObject([
      { channel: 'chat', userId: EVE, name: 'Name 666', excerpt: 'let <b>me</b> in', messages: 1 },
    ]);
    expect(view.questions).toEqual([]);
    expect(view.persons).toMatchObject([
      { name: 'Name 1', role: 'owner', channels: [{ channel: 'chat', ids: ['1'] }] },
    ]);
    expect(view.personCount).toBe(1);
  });

  it('names what waits for a yes, with its choices, but no question that is not the owners’', async () => {
    await using test = await knocked();
    const ask = { chat: test.rig.chat(OWNER), subject: 'stranger-not:x', expiresInMs: 60_000 };
    const choices = [{ label: 'Yes', action: 'yes' }];
    await test.rig.questions.ask({
      ...{ ...ask, id: 'a', markdown: 'Run **it**?', choices, approvers: 'owners' },
    });
    await test.rig.questions.ask({
      ...{ ...ask, id: 'b', markdown: 'Yours?', choices, approvers: [userId('77')] },
    });
    const { questions } = await test.view();
    expect(questions).toMatchObject([
      { id: 'a', channel: ask.chat.channel, markdown: 'Run **it**?', choices: [{ label: 'Yes' }] },
    ]);
  });
});

describe('a decision about somebody who waits', () => {
  it.each([
    ['once', ['hello', 'let <b>me</b> in'], undefined, 'this once'],
    ['allow', ['hello', 'let <b>me</b> in'], 'trusted', 'from now on'],
    ['block', ['hello'], 'blocked', 'Blocked'],
    ['drop', ['hello'], undefined, 'Left to you'],
  ])(
    'by %s does what the button does, and the button is spent',
    async (action, queued, role, words) => {
      await using test = await knocked();
      const body = { channel: 'chat', userId: EVE, action };
      const answer = await test.http.post(UNKNOWN_SENDERS, body);
      expect([answer.status, JSON.parse(answer.body).result]).toEqual([
        200,
        expect.stringContaining(words),
      ]);
      expect(await test.rig.queued()).toEqual(queued);
      expect(await test.rig.people.pairing.roleOf('chat', [EVE])).toBe(role);
      expect((await test.view()).unknownSenders).toEqual([]);
      expect(await test.rig.questions.open()).toEqual([]);
      const again = await test.http.post(UNKNOWN_SENDERS, body);
      expect([again.status, again.body]).toEqual([404, expect.stringContaining('already decided')]);
      expect(await test.rig.queued()).toEqual(queued);
    },
  );

  it.each([
    ['no such choice', { channel: 'chat', userId: EVE, action: 'owner' }, 400],
    ['a role beside it', { channel: 'chat', userId: EVE, action: 'allow', role: 'owner' }, 400],
    ['nobody', { channel: 'chat', userId: '', action: 'allow' }, 400],
    ['somebody who does not wait', { channel: 'chat', userId: '667', action: 'allow' }, 404],
    ['another channel', { channel: 'pigeon', userId: EVE, action: 'allow' }, 404],
    ['no object', 'allow', 400],
  ])('of %s is refused', async (_what, body, status) => {
    await using test = await knocked();
    expect((await test.http.post(UNKNOWN_SENDERS, body)).status).toBe(status);
    const { port } = test.http;
    const foreign = { origin: 'https://evil.example', host: `127.0.0.1:${port}` };
    const right = { channel: 'chat', userId: EVE, action: 'allow' };
    expect((await test.http.post(UNKNOWN_SENDERS, right, foreign)).status).toBe(403);
    expect(await test.rig.queued()).toEqual(['hello']);
    expect(await test.rig.people.pairing.roleOf('chat', [EVE])).toBe(undefined);
  });
});

describe('an admission by an id', () => {
  const admit = (test: Awaited<ReturnType<typeof knocked>>, ...[userId, role, channel]: string[]) =>
    test.http.post('/api/v1/people/admissions', { channel: channel ?? 'telegram', userId, role });

  it('holds before they write, is listed and undone', async () => {
    await using test = await knocked();
    const roleOf = () => test.rig.people.pairing.roleOf('telegram', ['42']);
    for (const role of ['trusted', 'owner', 'guest', 'blocked']) {
      const { status, body } = await admit(test, '42', role);
      expect([status, JSON.parse(body).result]).toEqual([200, expect.stringContaining('42')]);
      expect(await roleOf()).toBe(role);
      const { admissions } = await test.view();
      expect(admissions).toMatchObject([{ channel: 'telegram', userId: '42', role }]);
    }
    expect(JSON.parse((await admit(test, '42', 'none')).body).result).toContain('Undone');
    expect(await roleOf()).toBeUndefined();
    expect((await test.view()).admissions).toEqual([]);
    expect(JSON.parse((await admit(test, '42', 'none')).body).result).toContain('Nothing');
    const about = { subject: 'admission', about: 'telegram:42', by: 'owner' };
    const actions = ['trusted', 'owner', 'guest', 'blocked', 'undone'];
    expect(test.audited.map(({ fields }) => fields)).toEqual(
      actions.map((action) => ({ ...about, action })),
    );
  });

  it.each([
    ['an id that the channel has not', ['@ann', 'trusted'], 'Telegram ids are numbers'],
    ['an unknown channel', ['42', 'trusted', 'telegramm'], 'try telegram'],
    ['an unknown role', ['42', 'king'], 'role'],
  ])('of %s is refused', async (_what, wish, words) => {
    await using test = await knocked();
    const { status, body } = await admit(test, ...wish);
    expect([status, JSON.parse(body).error.message]).toEqual([400, expect.stringContaining(words)]);
    expect((await test.view()).admissions).toEqual([]);
  });

  it('blocks a known person and lets them in again', async () => {
    await using test = await knocked();
    await test.http.post(UNKNOWN_SENDERS, { channel: 'chat', userId: EVE, action: 'allow' });
    await test.rig.say(EVE, 'thanks');
    const eve = (await test.view()).persons.find(({ name }: ShownPerson) => name === 'Name 666');
    const set = (id: string, role: string) => test.http.post(`/api/v1/people/${id}`, { role });
    expect((await set(eve.id, 'blocked')).status).toBe(200);
    expect((await set(eve.id, 'trusted')).status).toBe(200);
    expect(await test.rig.people.pairing.roleOf('chat', [EVE])).toBe('trusted');
    await set(eve.id, 'blocked');
    expect(await test.rig.people.pairing.roleOf('chat', [EVE])).toBe('blocked');
    expect((await test.view()).admissions).toEqual([]);
  });
});

describe('an answer to what waits for a yes', () => {
  it('is carried out once, and not for a question of somebody else', async () => {
    await using test = await knocked();
    const [notice] = await test.rig.questions.open();
    const token = notice?.choices.find(({ action }) => action === 'allow')?.token;
    const first = await test.http.post(ANSWERS, { token });
    expect(JSON.parse(first.body).result).toContain('from now on');
    const second = await test.http.post(ANSWERS, { token });
    expect(JSON.parse(second.body).result).toContain('no longer');
    expect(await test.rig.queued()).toEqual(['hello', 'let <b>me</b> in']);
    await test.rig.questions.ask({
      ...{ id: 'b', chat: test.rig.chat(OWNER), subject: 'stranger:chat:1', markdown: 'Yours?' },
      ...{ choices: [{ label: 'Yes', action: 'allow' }], approvers: [userId('77')] },
      expiresInMs: 60_000,
    });
    const [theirs] = await test.rig.questions.open();
    const other = await test.http.post(ANSWERS, { token: theirs?.choices[0]?.token });
    expect(JSON.parse(other.body).result).toContain('not yours');
    expect(await test.rig.questions.open()).toHaveLength(1);
  });

  it.each([{}, { token: '' }, { token: 'no token' }, { token: 'x'.repeat(65) }, { token: ['a'] }])(
    'is refused without a token: %j',
    async (body) => {
      await using test = await knocked();
      expect((await test.http.post(ANSWERS, body)).status).toBe(400);
    },
  );
});

describe('how much is asked about somebody', () => {
  it('is changed for roles and groups too', async () => {
    await using test = await knocked();
    const set = (id: string, approvals: string) =>
      test.http.post('/api/v1/people/approvals', { id, approvals });
    expect((await set('owners', 'strict')).status).toBe(200);
    expect((await set('telegram:-7', 'open')).status).toBe(200);
    expect((await set('nowhere:-7', 'open')).status).toBe(404);
    expect((await test.view()).policies).toEqual([
      { id: 'owners', approvals: 'strict', configured: 'normal' },
      { id: 'trusted', approvals: 'auto', configured: 'normal' },
      { id: 'telegram:-42', approvals: 'auto', configured: 'normal' },
      { id: 'telegram:-7', approvals: 'open', configured: 'strict' },
    ]);
    await set('telegram:-7', 'auto');
    expect((await test.view()).policies).toHaveLength(3);
  });

  it('is changed and taken back, entered in the audit, and refused for nobody and for no policy', async () => {
    await using test = await knocked();
    const [{ id = '', approvals = '' }] = (await test.view()).persons;
    expect(approvals).toBe('auto');
    const set = async (fields: object) => {
      const { status, body } = await test.http.post('/api/v1/people/approvals', fields);
      return [status, JSON.parse(body).result ?? JSON.parse(body).error.message];
    };
    expect(await set({ id, approvals: 'strict' })).toEqual([
      200,
      expect.stringMatching(/^Approvals: strict\. Asked before every program/),
    ]);
    expect((await test.view()).persons[0].approvals).toBe('strict');
    expect(await set({ id, approvals: 'auto' })).toEqual([200, 'Approvals: as configured.']);
    expect((await test.view()).persons[0].approvals).toBe('auto');
    expect((await set({ id: 'p-none', approvals: 'open' }))[0]).toBe(404);
    expect((await set({ id, approvals: 'never ask' }))[0]).toBe(400);
    expect(test.audited.map(({ fields }) => fields)).toEqual([
      { subject: 'approvals', about: id, action: 'strict', by: 'owner' },
      { subject: 'approvals', about: id, action: 'auto', by: 'owner' },
    ]);
  });
});
