// Requests to the gateway that served this page, and to no other. The login is sent in a header,
// never in a URL, and is no cookie: a browser sends cookies to every port.

import { t } from '/texts.js';
import { reasonOf, type UploadedFile } from './chat/parts.tsx';
import { createLoginQuestion, forgetSession, redeem, session } from './login.tsx';

const REQUEST_TIMEOUT_MS = 15_000;
const FILE_TIMEOUT_MS = 120_000;

/** The gateway refused the request. `isFinal`: an unchanged retry cannot succeed. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly status: number;
  readonly isFinal: boolean;
  readonly retryAfterMs: number;

  constructor(status: number, message: string, retryAfterMs: number) {
    super(message);
    this.status = status;
    this.isFinal = status >= 400 && status < 500 && status !== 401 && status !== 429;
    this.retryAfterMs = retryAfterMs;
  }
}

export type WholeApi = ReturnType<typeof createApi>;

type Init = RequestInit & { readonly signal?: AbortSignal; readonly timeoutMs?: number };
type Read<T> = (response: Response) => Promise<T> | T;
/** `answer`: undefined where the gateway could not be reached. */
type Begun = {
  readonly answer: Promise<Answer<Response> | undefined>;
  readonly ended: AbortController;
  readonly unused: ReturnType<typeof setTimeout>;
};
type Answer<T> =
  | { readonly value: T; readonly refusal?: undefined }
  | { readonly refusal: RefusedError; readonly value?: undefined };

export function createApi() {
  const askForLogin = createLoginQuestion({ send });
  const begun = new Map<string, Begun>();
  let linkProblem = '';

  /** Begins a request that a view makes once its code is there. */
  function begin(path: string): void {
    const token = session();
    if (token === null) return;
    const ended = new AbortController();
    const init = { method: 'GET', signal: ended.signal };
    const answer = attempt(path, init, token, (response) => response).catch(() => undefined);
    const unused = setTimeout(() => {
      begun.delete(path);
      ended.abort();
    }, REQUEST_TIMEOUT_MS);
    begun.set(path, { answer, ended, unused });
  }

  /** Its response, if it was begun and is not refused. */
  async function takeBegun(path: string, { method, signal }: Init): Promise<Response | undefined> {
    const request = method === 'GET' ? begun.get(path) : undefined;
    if (request === undefined) return undefined;
    begun.delete(path);
    clearTimeout(request.unused);
    signal?.addEventListener('abort', () => request.ended.abort());
    return (await request.answer)?.value;
  }

  /**
   * Asks the person to log in when the gateway requires it. `read` extracts the result of the
   * response.
   */
  async function request<T>(path: string, init: Init, read: Read<T>): Promise<T> {
    const response = await takeBegun(path, init);
    if (response !== undefined) return read(response);
    for (let ended = ''; ; ) {
      const tried = session();
      const answer = await attempt(path, init, tried, read);
      if (answer.refusal === undefined) return answer.value;
      if (answer.refusal.status !== 401) throw answer.refusal;
      if (tried !== null) ended = answer.refusal.message;
      // Another request or tab may have logged in meanwhile, or detected that the login has ended.
      if (tried !== session()) continue;
      forgetSession(tried);
      await askForLogin(linkProblem || ended);
      linkProblem = '';
    }
  }

  /** For the login itself: never asks the person. */
  async function send(path: string, body: object, token: string | null = null): Promise<unknown> {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    const answer = await attempt(path, init, token, (response) => response.json());
    if (answer.refusal !== undefined) throw answer.refusal;
    return answer.value;
  }

  /**
   * Logs in by the code of a link. Resolves with the problem of the code if this browser is logged
   * in already; otherwise the login question shows it.
   */
  async function logIn(code: string): Promise<string | undefined> {
    try {
      await redeem({ send }, code);
    } catch (error) {
      if (session() !== null) return reasonOf(error);
      linkProblem = reasonOf(error);
    }
    return undefined;
  }

  async function getJson(path: string): Promise<unknown> {
    return request(path, { method: 'GET' }, (response) => response.json());
  }

  async function postJson(
    path: string,
    body: object,
    options: { readonly timeoutMs?: number } = {},
  ): Promise<unknown> {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body), ...options };
    return request(path, init, (response) => response.json());
  }

  /** A stream of events; resolves once connected. */
  async function openStream(path: string, signal: AbortSignal): Promise<ReadableStream> {
    return request(path, { method: 'GET', signal }, bodyOf);
  }

  /** The events that answer a request; ending the request ends what it began. */
  async function openPost(
    path: string,
    body: object,
    signal: AbortSignal,
  ): Promise<ReadableStream> {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body), signal };
    return request(path, init, bodyOf);
  }

  /** Uploads a file; returns the reference for a message. */
  async function upload(file: File, signal: AbortSignal): Promise<UploadedFile> {
    const body = new FormData();
    body.append('file', file, file.name);
    const init = { method: 'POST', body, signal, timeoutMs: FILE_TIMEOUT_MS };
    const answer = await request('/api/v1/files', init, (response) => response.json());
    return (answer as { readonly file: UploadedFile }).file;
  }

  async function download(media: string): Promise<Blob> {
    const init = { method: 'GET', timeoutMs: FILE_TIMEOUT_MS };
    return request(`/api/v1/files/${media}`, init, (response) => response.blob());
  }

  return { begin, logIn, getJson, postJson, openStream, openPost, upload, download };
}

async function attempt<T>(
  path: string,
  { timeoutMs = REQUEST_TIMEOUT_MS, ...init }: Init,
  token: string | null,
  read: Read<T>,
): Promise<Answer<T>> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  const headers = new Headers(init.headers);
  if (token !== null) headers.set('authorization', `Bearer ${token}`);
  try {
    const response = await fetch(path, {
      ...init,
      headers,
      signal: AbortSignal.any([late.signal, ...(init.signal === undefined ? [] : [init.signal])]),
      cache: 'no-store',
      redirect: 'error',
    });
    if (response.ok) return { value: await read(response) };
    const retryAfterMs = Number(response.headers.get('retry-after') ?? 0) * 1000;
    const message = await problemOf(response);
    return { refusal: new RefusedError(response.status, message, retryAfterMs) };
  } catch (error) {
    // What the browser says of it is not for people, and in no language of theirs.
    throw init.signal?.aborted === true
      ? error
      : new Error(t`The gateway could not be reached. Try again.`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

async function problemOf(response: Response): Promise<string> {
  try {
    const { error } = await response.json();
    return String(error.message);
  } catch {
    return t`The gateway answered with status ${response.status}.`;
  }
}

/** A stream always has a body. */
function bodyOf({ body }: Response): ReadableStream {
  if (body === null) throw new TypeError('no body');
  return body;
}

export function chatPath(chat: string): string {
  return `/api/v1/chats/${encodeURIComponent(chat)}`;
}
