// Headers on every answer: the page runs only its own files, talks only to where it came from, is
// framed by nobody and cannot turn text into markup (Trusted Types).

import type { FastifyHelmetOptions } from '@fastify/helmet';

export const SECURITY_HEADERS = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      connectSrc: ["'self'"],
      imgSrc: ["'self'", 'data:'],
      manifestSrc: ["'self'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
      requireTrustedTypesFor: ["'script'"],
      trustedTypes: ["'none'"],
    },
  },
  referrerPolicy: { policy: 'no-referrer' },
  xFrameOptions: { action: 'deny' },
  // The server speaks plain HTTP; whoever puts TLS before it decides about this.
  strictTransportSecurity: false,
} as const satisfies FastifyHelmetOptions;
