// Files of one door:
//   POST /api/<door>/files           a form with one file; 201 with how a message names it
//   GET  /api/<door>/files/<media>   the content, never to be shown by the browser itself

import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { DoorFiles } from '../channels/door.ts';
import { MediaError } from '../kernel/media/media.ts';
import { sizeWords } from '../kernel/message/attachment.ts';
import { NanobotError } from '../kernel/message/errors.ts';
import { mediaId } from '../kernel/message/ids.ts';
import { Refusal } from './failure-reply.ts';
import { valid } from './valid.ts';

/** The form around the file. */
const FORM_BYTES = 10_000;
const mediaParams = z.object({ media: z.string().regex(/^[0-9a-f]{64}$/, 'is no name of a file') });

export function addFileRoutes(app: FastifyInstance, path: string, files: DoorFiles) {
  // Of its own scope: no other route takes forms.
  app.register(async (scope) => {
    await scope.register(multipart, { throwFileSizeLimit: false });
    scope.post(path, { config: { isUpload: true } }, async (request, reply) => {
      const maxBytes = files.maxBytes();
      // Said before anything is read; who says nothing is cut off at the limit.
      if (Number(request.headers['content-length'] ?? 0) > maxBytes + FORM_BYTES) {
        throw tooLarge(maxBytes);
      }
      const limits = { fileSize: maxBytes + 1, files: 1, fields: 0, parts: 1, headerPairs: 20 };
      const part = await request.file({ limits }).catch(broken);
      if (part === undefined) throw new Refusal(400, 'invalid_request', 'The form has no file.');
      const file = await files
        .keep(part.filename, part.file)
        .catch((error) => refuse(error, maxBytes));
      return reply.code(201).send({ file });
    });
  });

  app.get(`${path}/:media`, async (request, reply) => {
    const { media } = valid(mediaParams, request.params);
    const content = await files.read(mediaId(media));
    if (content === undefined) {
      throw new Refusal(404, 'not_found', 'This file is not kept any more.');
    }
    reply.header('cache-control', 'private, no-store');
    reply.header('content-disposition', 'attachment');
    return reply.type('application/octet-stream').send(Buffer.from(content));
  });
}

const tooLarge = (maxBytes: number) =>
  new Refusal(413, 'file_too_large', `The file is larger than ${sizeWords(maxBytes)}.`);

/** What the reader of forms throws, before the file begins and inside of it. */
function broken(): never {
  throw new Refusal(400, 'invalid_request', 'The form cannot be read.');
}

function refuse(error: unknown, maxBytes: number): never {
  if (!(error instanceof NanobotError)) broken();
  if (!(error instanceof MediaError)) throw error;
  if (error.code === 'media_too_large') throw tooLarge(maxBytes);
  if (error.code === 'media_full') {
    throw new Refusal(507, 'media_full', 'There is no room left to keep the file.');
  }
  throw error;
}
