// What the person is told when the model could not answer.

import type { ProviderError } from '../core/errors.ts';

const FALLBACK = 'The model could not answer. Please try again in a few minutes.';

export const failureText = (error: ProviderError) => error.userText ?? FALLBACK;
