// Requests to the gateway this page came from, and to no other. The token, where one is needed, is
// asked for once and kept for this tab only; it travels in a header, never in an address.

import { askForToken } from './token.js';

const TOKEN_KEY = 'nanobot.token';
const REQUEST_TIMEOUT_MS = 15_000;

/** The gateway answered and refused. `isFinal`: trying again as it is cannot help. */
export class RefusedError extends Error {
  name = 'RefusedError';

  constructor(status, message, retryAfterMs) {
    super(message);
    this.status = status;
    this.isFinal = status >= 400 && status < 500 && status !== 401 && status !== 429;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Asks again with a token when the gateway wants one. */
async function request(path, init) {
  for (let problem = ''; ; ) {
    const token = sessionStorage.getItem(TOKEN_KEY);
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(path, {
      ...init,
      headers: { ...init.headers, ...authorization },
      cache: 'no-store',
      redirect: 'error',
    });
    if (response.ok) return response;
    const message = await problemOf(response);
    if (response.status !== 401) {
      const retryAfterMs = Number(response.headers.get('retry-after') ?? 0) * 1000;
      throw new RefusedError(response.status, message, retryAfterMs);
    }
    // Another request may have asked for it meanwhile.
    if (token === sessionStorage.getItem(TOKEN_KEY)) {
      if (token !== null) problem = message;
      sessionStorage.setItem(TOKEN_KEY, await askForToken(problem));
    }
  }
}

async function problemOf(response) {
  try {
    const { error } = await response.json();
    return String(error.message);
  } catch {
    return `The gateway answered with status ${response.status}.`;
  }
}

export async function getJson(path) {
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  const response = await request(path, { method: 'GET', signal });
  return response.json();
}

export async function postJson(path, body) {
  const response = await request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.json();
}

/** The stream of a chat's events; resolves once connected. */
export async function openEvents(chat, afterSeq, signal) {
  const path = `${chatPath(chat)}/events?live=delta&after=${afterSeq}`;
  const response = await request(path, { method: 'GET', signal });
  return response.body;
}

export function chatPath(chat) {
  return `/api/web/chats/${encodeURIComponent(chat)}`;
}
