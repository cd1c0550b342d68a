// A request that is refused: status, a code for programs and a sentence that says what to do.

import { NanobotError } from '../core/errors.ts';

export class Refusal extends NanobotError {
  override readonly name = 'Refusal';
  readonly status: number;
  /** Seconds after which trying again makes sense. */
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
