// People over HTTP: who waits to be let in, what waits for a yes, whom the agent knows; and an owner's
// decisions about them.
//   GET  /api/people                {strangers, questions, persons, personCount}
//   POST /api/people/strangers      {channel, userId, action}; {result: words}
//   POST /api/people/answers        {token} of a choice; {result: words}

import { z } from 'zod';
import { type HttpApp, Refusal, valid } from '../../http/replies.ts';

/** Times are epoch milliseconds; names and texts are others' words, never to be taken for markup. */
export type PeopleView = {
  readonly strangers: readonly {
    readonly channel: string;
    readonly userId: string;
    readonly name: string;
    readonly excerpt: string;
    /** Of their newest message. */
    readonly at: number;
    readonly messages: number;
  }[];
  readonly questions: readonly {
    readonly id: string;
    /** Where it was asked: "here" in its words is there. */
    readonly channel: string;
    readonly markdown: string;
    readonly askedAt: number;
    readonly expiresAt: number;
    readonly choices: readonly { readonly label: string; readonly token: string }[];
  }[];
  readonly persons: readonly {
    readonly id: string;
    readonly name: string;
    readonly role: string;
    readonly doors: readonly { readonly channel: string; readonly ids: readonly string[] }[];
  }[];
  /** Of all persons; the list may be shorter. */
  readonly personCount: number;
};

export interface PeopleControl {
  people(): Promise<PeopleView>;
  /** The words for the owner; undefined where nobody of this id waits. */
  decide(channel: string, userId: string, action: string): Promise<string | undefined>;
  answer(token: string): Promise<string>;
}

const MAX_ID_CHARS = 320;
const decisionBody = z.strictObject({
  channel: z.string().regex(/^[a-z0-9-]{1,64}$/, 'is no name'),
  userId: z.string().min(1).max(MAX_ID_CHARS),
  action: z.enum(['once', 'allow', 'block', 'drop']),
});
const answerBody = z.strictObject({
  token: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'is none of a choice'),
});

export function addPeopleRoutes(app: HttpApp, { people }: { readonly people: PeopleControl }) {
  app.get('/api/people', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    return people.people();
  });

  app.post('/api/people/strangers', async (request) => {
    const { channel, userId, action } = valid(decisionBody, request.body);
    const result = await people.decide(channel, userId, action);
    if (result !== undefined) return { result };
    throw new Refusal(404, 'not_found', 'They do not wait any more: it was decided before.');
  });

  app.post('/api/people/answers', async (request) => ({
    result: await people.answer(valid(answerBody, request.body).token),
  }));
}
