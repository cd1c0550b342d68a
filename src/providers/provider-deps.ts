// What every provider is made of: the vendor's row, where it answers, the key, deadlines.

import type { Clock } from '../lib/time/clock.ts';
import type { CallTimeouts } from './call-deadline.ts';
import type { LocalFetch } from './local-http.ts';
import type { ImageSource } from './seen-images.ts';
import type { Vendor } from './vendors.ts';

export type ProviderDeps = {
  readonly vendor: Vendor;
  readonly apiBase: string;
  /** Empty where the server asks for none. */
  readonly apiKey: string;
  readonly timeouts: CallTimeouts;
  readonly clock: Clock;
  readonly images: ImageSource;
  /** How the server is reached; left out: as any address. */
  readonly fetch?: LocalFetch;
};
