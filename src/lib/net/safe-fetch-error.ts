// Why an address was not fetched, in words for a model and for a person.

export type SafeFetchReason =
  | 'bad_url'
  | 'scheme'
  | 'credentials'
  | 'port'
  | 'private_address'
  | 'not_found'
  | 'redirects'
  | 'too_large'
  | 'timeout'
  | 'unreachable'
  | 'unreadable';

/** `message` is fit to be shown; it never holds the path or the query of the address. */
export class SafeFetchError extends Error {
  override readonly name = 'SafeFetchError';
  readonly reason: SafeFetchReason;
  constructor(
    reason: SafeFetchReason,
    message: string,
    options: { readonly cause?: unknown } = {},
  ) {
    super(message, options);
    this.reason = reason;
  }
}
