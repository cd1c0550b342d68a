// Requests to the gateway that served this page, and to no other. The login is sent in a header,
// never in a URL, and is no cookie: a browser sends cookies to every port.

import { createLoginQuestion, forgetSession, redeem, session } from './login.js';
import { t } from './texts.js';

const REQUEST_TIMEOUT_MS = 15_000;
const FILE_TIMEOUT_MS = 120_000;

/** The gateway refused the request. `isFinal`: an unchanged retry cannot succeed. */
export class RefusedError extends Error {
  name = 'RefusedError';

  constructor(status, message, retryAfterMs) {
    super(message);
    this.status = status;
    this.isFinal = status >= 400 && status < 500 && status !== 401 && status !== 429;
    this.retryAfterMs = retryAfterMs;
  }
}

export function createApi() {
  const askForLogin = createLoginQuestion({ send });
  let linkProblem = '';

  /**
   * Asks the person to log in when the gateway requires it. `read` extracts the result of the
   * response.
   */
  async function request(path, init, read) {
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
  async function send(path, body, token = null) {
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
  async function logIn(code) {
    try {
      await redeem({ send }, code);
    } catch (error) {
      if (session() !== null) return error.message;
      linkProblem = error.message;
    }
  }

  async function getJson(path) {
    return request(path, { method: 'GET' }, (response) => response.json());
  }

  async function postJson(path, body, options = {}) {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body), ...options };
    return request(path, init, (response) => response.json());
  }

  /** A stream of events; resolves once connected. */
  async function openStream(path, signal) {
    return request(path, { method: 'GET', signal }, (response) => response.body);
  }

  /** The events that answer a request; ending the request ends what it began. */
  async function openPost(path, body, signal) {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body), signal };
    return request(path, init, (response) => response.body);
  }

  /** Uploads a file; returns the reference for a message. */
  async function upload(file, signal) {
    const body = new FormData();
    body.append('file', file, file.name);
    const init = { method: 'POST', body, signal, timeoutMs: FILE_TIMEOUT_MS };
    return (await request('/api/v1/files', init, (response) => response.json())).file;
  }

  async function download(media) {
    const init = { method: 'GET', timeoutMs: FILE_TIMEOUT_MS };
    return request(`/api/v1/files/${media}`, init, (response) => response.blob());
  }

  return { logIn, getJson, postJson, openStream, openPost, upload, download };
}

async function attempt(path, { timeoutMs = REQUEST_TIMEOUT_MS, ...init }, token, read) {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
  try {
    const response = await fetch(path, {
      ...init,
      headers: { ...init.headers, ...authorization },
      signal: AbortSignal.any([late.signal, ...(init.signal === undefined ? [] : [init.signal])]),
      cache: 'no-store',
      redirect: 'error',
    });
    if (response.ok) return { value: await read(response) };
    const retryAfterMs = Number(response.headers.get('retry-after') ?? 0) * 1000;
    const message = await problemOf(response);
    return { refusal: new RefusedError(response.status, message, retryAfterMs) };
  } finally {
    clearTimeout(timer);
  }
}

async function problemOf(response) {
  try {
    const { error } = await response.json();
    return String(error.message);
  } catch {
    return t`The gateway answered with status ${response.status}.`;
  }
}

export function chatPath(chat) {
  return `/api/v1/chats/${encodeURIComponent(chat)}`;
}
