// How a page logs in: whoever holds the token has a one-time code made, the page redeems it.
//   POST /api/links   {revokeAll?}; {code, expiresAt}; only with the token
//   POST /api/login   {code}; {session}: the secret that the page sends from now on

import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { AuditLog } from '../kernel/observe/telemetry.ts';
import type { Access } from './access.ts';
import { Refusal } from './failure-reply.ts';
import { valid } from './valid.ts';

export type LoginRoutesOptions = {
  readonly access: Access;
  /** Ends every login and, where the gateway made its token itself, that token. */
  readonly revokeAll: () => Promise<void>;
  readonly audit: AuditLog;
};

/** Asked before anybody is known, so there is room for a code and nothing else. */
const MAX_LOGIN_BYTES = 1024;

const linkBody = z.strictObject({ revokeAll: z.boolean().default(false) });
const loginBody = z.strictObject({ code: z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'is no code') });

export function addLoginRoutes(
  app: FastifyInstance,
  { access, revokeAll, audit }: LoginRoutesOptions,
) {
  app.post('/api/links', async (request, reply) => {
    const { revokeAll: isAnew } = valid(linkBody, request.body);
    if (request.credential?.kind !== 'token') {
      throw new Refusal(403, 'token_needed', 'Only the gateway’s token makes links.');
    }
    if (isAnew) await revokeAll();
    audit.note({ kind: 'login', fields: { what: isAnew ? 'all ended' : 'link made' } });
    return reply.code(201).header('cache-control', 'no-store').send(access.makeCode());
  });

  const config = { isLogin: true } as const;
  app.post('/api/login', { config, bodyLimit: MAX_LOGIN_BYTES }, async (request, reply) => {
    const { code } = valid(loginBody, request.body);
    const session = await access.redeem(code);
    if (session === undefined) {
      audit.note({ kind: 'login', fields: { what: 'link refused', from: request.ip } });
      const message = 'This link was used already or has expired. Make another: nanobot link';
      throw new Refusal(401, 'link_over', message);
    }
    audit.note({ kind: 'login', fields: { what: 'page let in', from: request.ip } });
    return reply.header('cache-control', 'no-store').send({ session });
  });
}
