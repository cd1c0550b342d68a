// The types that routes of features are written against, so that the HTTP library is named in this folder alone.

export type { FastifyInstance as HttpApp, FastifyRequest as HttpRequest } from 'fastify';
