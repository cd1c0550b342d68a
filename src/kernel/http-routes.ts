// CONTRACT of the HTTP routes that features contribute. The server authenticates each request
// before it reads the
// body, and loads the code of a group of routes with the first request for one of them.

import { hash } from 'node:crypto';
import { z } from 'zod';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import { NanobotError } from './message/errors.ts';

/** The path may have parameters: `POST /api/v1/setup/channels/:name/restart`. */
export type RouteName = `${'GET' | 'POST'} /api/${string}`;

export type RouteRequest = {
  readonly params: unknown;
  readonly body: unknown;
  /** Path and query, as requested. */
  readonly address: string;
  /** It came with the gateway's token, not with a login of the page. */
  readonly hasToken: boolean;
};

type RouteAnswer =
  /** `status`: default 200. */
  | { readonly status?: number; readonly body?: object }
  /** An HTML page of fixed text. */
  | { readonly status?: number; readonly page: string }
  /**
   * Sent as server-sent events. They must end with the signal: the reader left, or its access was
   * revoked.
   */
  | { events(signal: AbortSignal): AsyncIterable<object> | Promise<AsyncIterable<object>> };

/** What a documented route reads and answers: the OpenAPI document is made of it. */
export type RouteSchemas = {
  readonly summary: string;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** Default JSON. */
  readonly bodyType?: 'multipart/form-data';
  /** Of the response, or of each event. */
  readonly answer: z.ZodType;
  /** Default JSON, or the events of a stream. */
  readonly answerType?: 'application/octet-stream';
  /** Default 200. */
  readonly status?: number;
  readonly isStream?: true;
};

export type RouteHandler = {
  /** @throws Refusal */
  (request: RouteRequest): RouteAnswer | Promise<RouteAnswer>;
  /** Of the routes under /api/v1. */
  readonly schemas?: RouteSchemas;
};

export type RouteHandlers<Name extends RouteName = RouteName> = Readonly<
  Record<Name, RouteHandler>
>;

export type Route = {
  readonly name: RouteName;
  /** Needs no token or login: what it is asked carries its own proof. */
  readonly isOpen: boolean;
  load(): Promise<RouteHandler>;
};

/** A refused request: a status, a code for programs and a sentence with the remedy. */
export class Refusal extends NanobotError {
  override readonly name = 'Refusal';
  readonly status: number;
  /** Seconds after which a retry is useful. */
  readonly retryAfterSecs: number | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    options: { readonly retryAfterSecs?: number } = {},
  ) {
    super(code, message);
    this.status = status;
    this.retryAfterSecs = options.retryAfterSecs;
  }
}

/** Validates the input of a request. @throws Refusal (400) that names the problem. */
export function valid<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.join('.') ?? '';
  const what = issue?.message ?? t`is not valid`;
  throw new Refusal(400, 'invalid_request', `${where === '' ? t`The request` : where}: ${what}`);
}

/** Of a text as it was shown: a change made on top of it is refused if the text changed since. */
export const versionOf = (shown: string): string => hash('sha256', shown, 'base64url').slice(0, 22);

// The routes under /api/v1: the schema that validates a request, and types the answer, is the one
// that documents it.

const NOTHING = z.object({});

/** A route of the documented API. */
export function endpoint<
  Answer extends object,
  Params extends z.ZodObject = typeof NOTHING,
  Body extends z.ZodType = typeof NOTHING,
>(
  schemas: RouteSchemas & {
    readonly answer: z.ZodType<Answer>;
    readonly params?: Params;
    readonly body?: Body;
  },
  run: (params: z.output<Params>, body: z.output<Body>) => Answer | Promise<Answer>,
): RouteHandler {
  const { status = 200 } = schemas;
  const read = <T extends z.ZodType>(schema: T | undefined, value: unknown) =>
    valid(schema ?? NOTHING, value) as z.output<T>;
  const handle = async ({ params, body }: RouteRequest): Promise<RouteAnswer> => ({
    status,
    body: await run(read(schemas.params, params), read(schemas.body, body ?? {})),
  });
  return Object.assign(handle, { schemas });
}

/** A stream of the documented API: what `run` yields for one request, which it may still refuse. */
export function streamed<
  Event extends object,
  Params extends z.ZodObject = typeof NOTHING,
  Body extends z.ZodType = typeof NOTHING,
>(
  schemas: Pick<RouteSchemas, 'summary'> & {
    readonly answer: z.ZodType<Event>;
    readonly params?: Params;
    readonly body?: Body;
  },
  run: (
    params: z.output<Params>,
    body: z.output<Body>,
    signal: AbortSignal,
  ) => AsyncIterable<Event> | Promise<AsyncIterable<Event>>,
): RouteHandler {
  const handle = ({ params, body }: RouteRequest) => {
    const asked = valid(schemas.params ?? NOTHING, params) as z.output<Params>;
    const sent = valid(schemas.body ?? NOTHING, body ?? {}) as z.output<Body>;
    return { events: (signal: AbortSignal) => run(asked, sent, signal) };
  };
  return Object.assign(handle, { schemas: { ...schemas, isStream: true as const } });
}

/** How often the state behind a stream is looked at. */
const LOOK_MS = 1000;

/**
 * A stream of the documented API: what `read` answers, at once and after each change. It looks at the
 * state itself, so that it also shows what another process of this home changed.
 */
export function watched<Answer extends object, Params extends z.ZodObject = typeof NOTHING>(
  schemas: Pick<RouteSchemas, 'summary'> & {
    readonly answer: z.ZodType<Answer>;
    readonly params?: Params;
  },
  clock: Pick<Clock, 'sleep'>,
  read: (params: z.output<Params>) => Promise<Answer>,
): RouteHandler {
  return streamed(schemas, async function* (params, _body, signal) {
    for (let sent = ''; !signal.aborted; ) {
      const view = await read(params);
      const text = JSON.stringify(view);
      if (text !== sent) yield view;
      sent = text;
      await clock.sleep(LOOK_MS, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    }
  });
}
